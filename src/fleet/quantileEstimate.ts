/** Step of one observation as a share of the estimate. */
const STEP = 0.05;

/**
 * Running quantile of positive values by stochastic approximation: up by `q`, down by `1 − q`, in steps that are a share
 * of the estimate. In balance the share of values below it is `q`; it follows a drift within some dozens of values.
 */
export class QuantileEstimate {
  readonly #quantile: number;
  #value: number;

  constructor(quantile: number, first: number) {
    this.#quantile = quantile;
    this.#value = first;
  }

  get value(): number {
    return this.#value;
  }

  observe(value: number): void {
    const step = STEP * (value > this.#value ? this.#quantile : this.#quantile - 1);
    this.#value = Math.max(1, this.#value * (1 + step));
  }
}
