const REMEMBERED = 64;

/** The highest value a count had within a short time, from a ring of its last changes. */
export class OwnCountHistory {
  readonly #windowMs: number;
  readonly #values = new Float64Array(REMEMBERED);
  /** When the value at the same place was replaced by the next one. */
  readonly #untilMs = new Float64Array(REMEMBERED).fill(Number.NEGATIVE_INFINITY);
  #next = 0;
  #current = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  note(value: number, nowMs: number): void {
    if (value === this.#current) return;
    this.#values[this.#next] = this.#current;
    this.#untilMs[this.#next] = nowMs;
    this.#next = (this.#next + 1) % REMEMBERED;
    this.#current = value;
  }

  /** The most the count was since `windowMs` before `nowMs`. */
  most(nowMs: number): number {
    let most = this.#current;
    for (let at = 0; at < REMEMBERED; at++)
      if (this.#untilMs[at]! >= nowMs - this.#windowMs) most = Math.max(most, this.#values[at]!);
    return most;
  }
}
