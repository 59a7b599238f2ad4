/** Answers that are remembered. */
const WINDOW = 100;
/** Fewer say nothing. */
const LEAST_ANSWERS = 20;
const ALARM_BELOW = 0.8;
const WELL_FROM = 0.9;

/**
 * How often a replica reports as many cached tokens as were predicted, over its last hundred answers. What an engine
 * evicts or computes between choice and start makes single answers differ; a view that is wrong makes most differ.
 */
export class CachePrediction {
  readonly #agreed = new Uint8Array(WINDOW);
  #answers = 0;
  #agreements = 0;
  #isOff = false;

  /** @param toleranceTokens as many as the engine's block has: it shares and reports whole blocks */
  observe(predictedTokens: number, reportedTokens: number, toleranceTokens: number): void {
    const agrees = Math.abs(predictedTokens - reportedTokens) <= toleranceTokens ? 1 : 0;
    const at = this.#answers % WINDOW;
    if (this.#answers >= WINDOW) this.#agreements -= this.#agreed[at]!;
    this.#agreed[at] = agrees;
    this.#agreements += agrees;
    this.#answers++;
    if (this.#answers < LEAST_ANSWERS) return;
    const share = this.agreement!;
    if (share < ALARM_BELOW) this.#isOff = true;
    else if (share >= WELL_FROM) this.#isOff = false;
  }

  /** Share of the remembered answers, 0..1; null: none yet. */
  get agreement(): number | null {
    return this.#answers === 0 ? null : this.#agreements / Math.min(WINDOW, this.#answers);
  }

  /** Predictions are persistently wrong. */
  get isOff(): boolean {
    return this.#isOff;
  }
}
