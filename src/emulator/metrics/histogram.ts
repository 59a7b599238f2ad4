/** A Prometheus histogram: how many observations were at most each bound, their sum and their count. */
export class Histogram {
  readonly bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;
  #count = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = new Float64Array(bounds.length);
  }

  get sum(): number {
    return this.#sum;
  }

  get count(): number {
    return this.#count;
  }

  observe(value: number): void {
    this.#sum += value;
    this.#count++;
    const at = this.bounds.findIndex((bound) => value <= bound);
    if (at !== -1) this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  /** Observations at most `bounds[i]`, for each i. */
  cumulative(): number[] {
    let sum = 0;
    return Array.from(this.#counts, (count) => (sum += count));
  }
}
