import { Family } from "./family.ts";
import type { Sample } from "./family.ts";

/** A number that only grows. */
export class CounterSeries {
  total = 0;

  add(amount = 1): void {
    this.total += amount;
  }
}

export class CounterFamily extends Family<CounterSeries> {
  override readonly type = "counter";

  protected override made(): CounterSeries {
    return new CounterSeries();
  }

  protected override samples(labels: Record<string, string>, series: CounterSeries): Sample[] {
    return [{ labels, value: series.total }];
  }
}
