import { prefillMs, stepMs } from "#src/hardware/stepTimes.ts";
import type { StepTimes } from "#src/hardware/stepTimes.ts";

/** Where the coefficients come from: the table of a known GPU, a guess, or this replica's own traffic. */
export type LatencyBasis = "prior" | "generic" | "learned";

/** Predicts a replica's times and learns them from what the router sees. Tokens in, milliseconds out. */
export class LatencyModel {
  readonly #prior: StepTimes;
  readonly #priorBasis: "prior" | "generic";

  constructor(prior: StepTimes, priorBasis: "prior" | "generic") {
    this.#prior = prior;
    this.#priorBasis = priorBasis;
  }

  get coefficients(): StepTimes {
    return this.#prior;
  }

  get basis(): LatencyBasis {
    return this.#priorBasis;
  }

  /** Mean absolute error of recent predictions as a share of what was observed; null before any observation. */
  get prefillMape(): number | null {
    return null;
  }

  get stepMape(): number | null {
    return null;
  }

  prefillMs(newTokens: number, cachedTokens: number): number {
    return prefillMs(this.#prior, newTokens, cachedTokens);
  }

  stepMs(sequences: number, kvTokens: number): number {
    return stepMs(this.#prior, sequences, kvTokens);
  }

  /** A prompt took `elapsedMs` from being sent to its first token, of which `queueShareMs` was spent behind others. */
  observePrefill(newTokens: number, cachedTokens: number, elapsedMs: number, queueShareMs: number): void {
    void [newTokens, cachedTokens, elapsedMs, queueShareMs];
  }

  /** Two tokens of one sequence came `gapMs` apart while the batch was `sequences` holding `kvTokens`. */
  observeStep(sequences: number, kvTokens: number, gapMs: number): void {
    void [sequences, kvTokens, gapMs];
  }
}
