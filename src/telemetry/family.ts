import type { Metric, Registry } from "prom-client";

/** One line of the exposition: a value under its labels. */
export interface Sample {
  readonly labels: Record<string, string | number>;
  readonly value: number;
  readonly metricName?: string;
}

/** A family that meets more label sets than this folds the rest into one series labelled `other`. */
export const MAX_SERIES = 10_000;

const OVERFLOW = "other";

/**
 * Series of one metric by their label values. A caller resolves its series once and then only adds numbers to it:
 * prom-client's own children hash their labels at every observation, which costs more than the observation.
 */
export abstract class Family<Series> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  abstract readonly type: "counter" | "histogram";
  readonly aggregator = "sum";
  readonly #maxSeries: number;
  readonly #series = new Map<string, { readonly labels: Record<string, string>; readonly series: Series }>();

  constructor(
    registry: Registry,
    described: {
      readonly name: string;
      readonly help: string;
      readonly labels?: readonly string[];
      readonly maxSeries?: number;
    },
  ) {
    this.name = described.name;
    this.help = described.help;
    this.labelNames = described.labels ?? [];
    this.#maxSeries = described.maxSeries ?? MAX_SERIES;
    // The registry asks its metrics for a name, a help text and `get()`; its typing knows only its own four classes.
    registry.registerMetric(this as unknown as Metric);
  }

  /** The series of these label values, in the order of `labelNames`; made at first use. */
  with(...values: readonly string[]): Series {
    const key = values.length === 1 ? values[0]! : values.join("\u0000");
    const known = this.#series.get(key);
    if (known !== undefined) return known.series;
    if (this.#series.size >= this.#maxSeries && values.some((value) => value !== OVERFLOW))
      return this.with(...values.map(() => OVERFLOW));
    const labels: Record<string, string> = {};
    for (const [at, name] of this.labelNames.entries()) labels[name] = values[at] ?? "";
    const series = this.made();
    this.#series.set(key, { labels, series });
    return series;
  }

  get size(): number {
    return this.#series.size;
  }

  /** Drops every series whose labels do not satisfy `keep`. A series still held by a caller is no longer shown. */
  prune(keep: (labels: Readonly<Record<string, string>>) => boolean): void {
    for (const [key, { labels }] of this.#series) if (!keep(labels)) this.#series.delete(key);
  }

  /** The registry's side of the contract. */
  get(): Promise<{ name: string; help: string; type: string; aggregator: string; values: Sample[] }> {
    const values = [...this.#series.values()].flatMap(({ labels, series }) => this.samples(labels, series));
    return Promise.resolve({ name: this.name, help: this.help, type: this.type, aggregator: this.aggregator, values });
  }

  reset(): void {
    this.#series.clear();
  }

  protected abstract made(): Series;
  protected abstract samples(labels: Record<string, string>, series: Series): Sample[];
}
