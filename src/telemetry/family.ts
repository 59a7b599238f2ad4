import type { Metric, Registry } from "prom-client";

/** One line of the exposition: a value under its labels. */
export interface Sample {
  readonly labels: Record<string, string | number>;
  readonly value: number;
  readonly metricName?: string;
}

/** A family that meets more label sets than this folds the rest into one series labelled `other`. */
const MAX_SERIES = 10_000;

const OVERFLOW = "other";

/** Series by label values, one level of the tree per label: joining the values into one key would cost more. */
interface Branch<Series> {
  readonly further: Map<string, Branch<Series>>;
  series: Series | null;
}

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
  readonly #root: Branch<Series> = { further: new Map(), series: null };
  #size = 0;

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
    let branch: Branch<Series> | undefined = this.#root;
    for (let at = 0; at < values.length && branch !== undefined; at++) branch = branch.further.get(values[at]!);
    return branch?.series ?? this.#add(values);
  }

  get size(): number {
    return this.#size;
  }

  /** Drops every series whose labels do not satisfy `keep`. A series still held by a caller is no longer shown. */
  prune(keep: (labels: Readonly<Record<string, string>>) => boolean): void {
    this.#walk(this.#root, {}, (branch, labels) => {
      if (keep(labels)) return;
      branch.series = null;
      this.#size--;
    });
  }

  /** The registry's side of the contract. */
  get(): Promise<{ name: string; help: string; type: string; aggregator: string; values: Sample[] }> {
    const values: Sample[] = [];
    this.#walk(this.#root, {}, (_branch, labels, series) => values.push(...this.samples(labels, series)));
    return Promise.resolve({ name: this.name, help: this.help, type: this.type, aggregator: this.aggregator, values });
  }

  reset(): void {
    this.#root.further.clear();
    this.#root.series = null;
    this.#size = 0;
  }

  protected abstract made(): Series;
  protected abstract samples(labels: Record<string, string>, series: Series): Sample[];

  #add(values: readonly string[]): Series {
    if (this.#size >= this.#maxSeries && values.some((value) => value !== OVERFLOW))
      return this.with(...values.map(() => OVERFLOW));
    let branch = this.#root;
    for (const value of values) {
      let next = branch.further.get(value);
      if (next === undefined) branch.further.set(value, (next = { further: new Map(), series: null }));
      branch = next;
    }
    this.#size++;
    branch.series = this.made();
    return branch.series;
  }

  #walk(
    branch: Branch<Series>,
    labels: Readonly<Record<string, string>>,
    visit: (branch: Branch<Series>, labels: Record<string, string>, series: Series) => void,
  ): void {
    if (branch.series !== null) visit(branch, labels, branch.series);
    const name = this.labelNames[Object.keys(labels).length];
    if (name === undefined) return;
    for (const [value, next] of branch.further) {
      this.#walk(next, { ...labels, [name]: value }, visit);
      if (next.series === null && next.further.size === 0) branch.further.delete(value);
    }
  }
}
