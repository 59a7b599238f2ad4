/** A bound per minute. A full bucket allows a burst of one minute's worth; it refills evenly. */
export class TokenBucket {
  readonly perMinute: number;
  #level: number;
  #atMs: number;

  constructor(perMinute: number, nowMs: number) {
    this.perMinute = perMinute;
    this.#level = perMinute;
    this.#atMs = nowMs;
  }

  /**
   * Takes `amount` and returns 0, or takes nothing and returns the milliseconds until it would succeed. An amount that is
   * larger than the whole bucket needs a full one and leaves a debt, so that it is not impossible for ever.
   */
  take(amount: number, nowMs: number): number {
    this.#refill(nowMs);
    const missing = Math.min(amount, this.perMinute) - this.#level;
    if (missing > 0) return (missing / this.perMinute) * 60_000;
    this.#level -= amount;
    return 0;
  }

  /** Settles the difference between what was taken and what was used; more used than taken leaves a debt. */
  correct(taken: number, used: number, nowMs: number): void {
    this.#refill(nowMs);
    this.#level = Math.min(this.perMinute, this.#level + taken - used);
  }

  #refill(nowMs: number): void {
    const elapsedMs = Math.max(0, nowMs - this.#atMs);
    this.#level = Math.min(this.perMinute, this.#level + (elapsedMs * this.perMinute) / 60_000);
    this.#atMs = Math.max(this.#atMs, nowMs);
  }
}
