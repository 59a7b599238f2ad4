import type { Registry } from "prom-client";
import { Family } from "./family.ts";
import type { Sample } from "./family.ts";

/** Counts per bucket in a typed array; an observation is a short search and two additions. */
export class HistogramSeries {
  readonly #upperBounds: Float64Array;
  /** One more than there are bounds: the last counts what is above all of them. Not cumulative. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(upperBounds: Float64Array) {
    this.#upperBounds = upperBounds;
    this.counts = new Float64Array(upperBounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#upperBounds;
    let low = 0;
    let high = bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (value <= bounds[middle]!) high = middle;
      else low = middle + 1;
    }
    this.counts[low]! += 1;
    this.sum += value;
  }
}

/**
 * A histogram whose observations come in one unit and are shown in another: `shownPerObserved` is 1/1000 where
 * milliseconds are observed and seconds shown. Bounds are in the shown unit.
 */
export class HistogramFamily extends Family<HistogramSeries> {
  override readonly type = "histogram";
  readonly #shownBounds: readonly number[];
  readonly #observedBounds: Float64Array;
  readonly #shownPerObserved: number;

  constructor(
    registry: Registry,
    described: {
      readonly name: string;
      readonly help: string;
      readonly labels?: readonly string[];
      readonly bounds: readonly number[];
      readonly shownPerObserved?: number;
    },
  ) {
    super(registry, described);
    this.#shownPerObserved = described.shownPerObserved ?? 1;
    this.#shownBounds = described.bounds;
    this.#observedBounds = Float64Array.from(described.bounds, (bound) => bound / this.#shownPerObserved);
  }

  protected override made(): HistogramSeries {
    return new HistogramSeries(this.#observedBounds);
  }

  protected override samples(labels: Record<string, string>, series: HistogramSeries): Sample[] {
    const samples: Sample[] = [];
    const metricName = `${this.name}_bucket`;
    let count = 0;
    for (const [at, bound] of this.#shownBounds.entries()) {
      count += series.counts[at]!;
      samples.push({ labels: { ...labels, le: bound }, value: count, metricName });
    }
    count += series.counts[this.#shownBounds.length]!;
    samples.push({ labels: { ...labels, le: "+Inf" }, value: count, metricName });
    samples.push({ labels, value: series.sum * this.#shownPerObserved, metricName: `${this.name}_sum` });
    samples.push({ labels, value: count, metricName: `${this.name}_count` });
    return samples;
  }
}
