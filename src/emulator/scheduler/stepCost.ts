import type { StepTimes } from "#src/hardware/stepTimes.ts";

/**
 * Adds up what a step computes and prices it: a decode batch costs `d + e·B + f·K`, prompt chunks `a + Σ b·u + c·u·(2·ctx
 * + u)`; a mixed step costs the decode batch plus the linear and attention parts of its chunks, as the weights are read
 * once for both.
 */
export class StepCost {
  readonly #times: StepTimes;
  #chunkMs = 0;
  #chunks = 0;
  #sequences = 0;
  #kvTokens = 0;

  constructor(times: StepTimes) {
    this.#times = times;
  }

  reset(): void {
    this.#chunkMs = 0;
    this.#chunks = 0;
    this.#sequences = 0;
    this.#kvTokens = 0;
  }

  /** One sequence decodes a token over `kvTokens` held ones. */
  addDecode(kvTokens: number): void {
    this.#sequences++;
    this.#kvTokens += kvTokens;
  }

  /** A chunk of `tokens` prompt tokens behind `contextTokens` that are there already. */
  addChunk(tokens: number, contextTokens: number): void {
    const u = tokens / 1000;
    this.#chunks++;
    this.#chunkMs +=
      this.#times.prefillMsPerKtok * u + this.#times.prefillMsPerKtok2 * u * ((2 * contextTokens) / 1000 + u);
  }

  get durationMs(): number {
    const times = this.#times;
    if (this.#sequences === 0) return this.#chunks === 0 ? 0 : times.prefillBaseMs + this.#chunkMs;
    const decodeMs =
      times.stepBaseMs + times.stepMsPerSequence * this.#sequences + (times.stepMsPerKtok * this.#kvTokens) / 1000;
    return decodeMs + this.#chunkMs;
  }
}
