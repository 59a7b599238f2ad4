import type { StepTimes } from "#src/hardware/stepTimes.ts";

/**
 * Adds up what a step computes and prices it: a decode batch costs `d + e·B + f·K`, prompt chunks `a + Σ b·u + c·u·(2·ctx
 * + u)`; a mixed step costs the decode batch plus the linear and attention parts of its chunks, as the weights are read
 * once for both.
 */
export class StepCost {
  readonly #times: StepTimes;
  readonly #draftMs: number;
  #chunkMs = 0;
  #chunks = 0;
  #sequences = 0;
  #kvTokens = 0;
  /** Most tokens drafted for one sequence. */
  #drafted = 0;

  /** `draftMs`: what drafting one token takes, for the whole batch. */
  constructor(times: StepTimes, draftMs = 0) {
    this.#times = times;
    this.#draftMs = draftMs;
  }

  reset(): void {
    this.#chunkMs = 0;
    this.#chunks = 0;
    this.#sequences = 0;
    this.#kvTokens = 0;
    this.#drafted = 0;
  }

  /**
   * One sequence decodes a token over `kvTokens` held ones, and has `drafted` more verified: these are computed like
   * prompt tokens, which a small batch does not feel and a full one does.
   */
  addDecode(kvTokens: number, drafted = 0): void {
    this.#sequences++;
    this.#kvTokens += kvTokens;
    if (drafted === 0) return;
    this.#chunkMs += (this.#times.prefillMsPerKtok * drafted) / 1000;
    this.#drafted = Math.max(this.#drafted, drafted);
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
    return decodeMs + this.#chunkMs + this.#drafted * this.#draftMs;
  }
}
