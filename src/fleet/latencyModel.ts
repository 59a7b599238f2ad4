import type { StepTimes } from "#src/hardware/stepTimes.ts";
import { ScaledRegression } from "./scaledRegression.ts";

/** Where the coefficients come from: the table of a known GPU, a guess, or this replica's own traffic. */
export type LatencyBasis = "prior" | "generic" | "learned";

/** From so many observations on, the model is called learned. */
const LEARNED_AFTER = 20;
/**
 * A prior of zero (a fit that found no quadratic part) could never be learned; this share of its neighbour is small
 * enough to predict nothing wrong and large enough to grow from.
 */
const LEAST_SHARE = 1e-3;
/** No prefill is quicker than this share of what was predicted; a queue share guessed too high must not say so. */
const LEAST_PREFILL_SHARE = 0.05;

function withoutZeros(prior: StepTimes): StepTimes {
  const prefillMsPerKtok = Math.max(prior.prefillMsPerKtok, 1e-3);
  const stepBaseMs = Math.max(prior.stepBaseMs, 1e-3);
  return {
    prefillBaseMs: Math.max(prior.prefillBaseMs, LEAST_SHARE * prefillMsPerKtok),
    prefillMsPerKtok,
    prefillMsPerKtok2: Math.max(prior.prefillMsPerKtok2, LEAST_SHARE * prefillMsPerKtok),
    stepBaseMs,
    stepMsPerSequence: Math.max(prior.stepMsPerSequence, LEAST_SHARE * stepBaseMs),
    stepMsPerKtok: Math.max(prior.stepMsPerKtok, LEAST_SHARE * stepBaseMs),
  };
}

/**
 * Predicts a replica's times and learns them from what the router sees. Tokens in, milliseconds out. The formulas are
 * those of `StepTimes`; predictions are never negative and never NaN.
 */
export class LatencyModel {
  readonly #prior: StepTimes;
  readonly #priorBasis: "prior" | "generic";
  readonly #prefill = new ScaledRegression();
  readonly #step = new ScaledRegression();

  constructor(prior: StepTimes, priorBasis: "prior" | "generic") {
    this.#prior = withoutZeros(prior);
    this.#priorBasis = priorBasis;
  }

  get coefficients(): StepTimes {
    const prior = this.#prior;
    return {
      prefillBaseMs: prior.prefillBaseMs * this.#prefill.factor(0),
      prefillMsPerKtok: prior.prefillMsPerKtok * this.#prefill.factor(1),
      prefillMsPerKtok2: prior.prefillMsPerKtok2 * this.#prefill.factor(2),
      stepBaseMs: prior.stepBaseMs * this.#step.factor(0),
      stepMsPerSequence: prior.stepMsPerSequence * this.#step.factor(1),
      stepMsPerKtok: prior.stepMsPerKtok * this.#step.factor(2),
    };
  }

  /** Of `coefficients`, without making an object: pricing reads these two for every candidate. */
  get prefillBaseMs(): number {
    return this.#prior.prefillBaseMs * this.#prefill.factor(0);
  }

  get prefillMsPerKtok(): number {
    return this.#prior.prefillMsPerKtok * this.#prefill.factor(1);
  }

  get basis(): LatencyBasis {
    return this.#prefill.observations >= LEARNED_AFTER || this.#step.observations >= LEARNED_AFTER
      ? "learned"
      : this.#priorBasis;
  }

  /** Prefills and steps learned from. */
  get observations(): number {
    return this.#prefill.observations + this.#step.observations;
  }

  /** Mean absolute error of recent predictions as a share of what was observed; null before any observation. */
  get prefillMape(): number | null {
    return this.#prefill.mape;
  }

  get stepMape(): number | null {
    return this.#step.mape;
  }

  /** How much slower than its prior this replica prefills and steps. */
  get prefillSlowness(): number {
    return this.#prefill.slowness;
  }

  get stepSlowness(): number {
    return this.#step.slowness;
  }

  prefillMs(newTokens: number, cachedTokens: number): number {
    if (!(newTokens > 0)) return 0;
    const u = newTokens / 1000;
    const ctx = Math.max(0, cachedTokens) / 1000;
    const prior = this.#prior;
    return this.#prefill.predict(
      prior.prefillBaseMs,
      prior.prefillMsPerKtok * u,
      prior.prefillMsPerKtok2 * u * (2 * ctx + u),
    );
  }

  /** As `prefillMs`, by the prior alone: what is learned meanwhile does not change it. */
  priorPrefillMs(newTokens: number, cachedTokens: number): number {
    if (!(newTokens > 0)) return 0;
    const u = newTokens / 1000;
    const { prefillBaseMs, prefillMsPerKtok, prefillMsPerKtok2 } = this.#prior;
    return prefillBaseMs + prefillMsPerKtok * u + prefillMsPerKtok2 * u * (2 * (Math.max(0, cachedTokens) / 1000) + u);
  }

  stepMs(sequences: number, kvTokens: number): number {
    const prior = this.#prior;
    return this.#step.predict(
      prior.stepBaseMs,
      prior.stepMsPerSequence * Math.max(0, sequences),
      (prior.stepMsPerKtok * Math.max(0, kvTokens)) / 1000,
    );
  }

  /** A prompt took `elapsedMs` from being sent to its first token, of which `queueShareMs` passed behind others. */
  observePrefill(newTokens: number, cachedTokens: number, elapsedMs: number, queueShareMs: number): void {
    if (!(newTokens > 0) || !(elapsedMs > 0)) return;
    const u = newTokens / 1000;
    const ctx = Math.max(0, cachedTokens) / 1000;
    const prior = this.#prior;
    const leastMs = LEAST_PREFILL_SHARE * this.prefillMs(newTokens, cachedTokens);
    this.#prefill.observe(
      prior.prefillBaseMs,
      prior.prefillMsPerKtok * u,
      prior.prefillMsPerKtok2 * u * (2 * ctx + u),
      Math.max(Math.min(elapsedMs, leastMs), elapsedMs - Math.max(0, queueShareMs)),
    );
  }

  /**
   * Prompts of `ktok` thousand new tokens together, and of `ktok2` = Σ u·(2·ctx + u), took `elapsedMs`, of which `stepsMs`
   * went into the decode steps they rode on. With those they have no fixed part.
   */
  observePrefills(ktok: number, ktok2: number, elapsedMs: number, stepsMs: number): void {
    if (!(ktok > 0) || !(elapsedMs > 0)) return;
    const prior = this.#prior;
    const baseMs = stepsMs > 0 ? 0 : prior.prefillBaseMs;
    const parts = [baseMs, prior.prefillMsPerKtok * ktok, prior.prefillMsPerKtok2 * ktok2] as const;
    const leastMs = LEAST_PREFILL_SHARE * this.#prefill.predict(...parts);
    this.#prefill.observe(...parts, Math.max(Math.min(elapsedMs, leastMs), elapsedMs - stepsMs));
  }

  /**
   * Steps of a batch of `sequences` holding `kvTokens` took `gapMs` each. All sequences of a batch see the same steps:
   * report each step once, or one stall looks like a new level.
   */
  observeStep(sequences: number, kvTokens: number, gapMs: number): void {
    const prior = this.#prior;
    this.#step.observe(
      prior.stepBaseMs,
      prior.stepMsPerSequence * Math.max(1, sequences),
      (prior.stepMsPerKtok * Math.max(0, kvTokens)) / 1000,
      gapMs,
    );
  }

  /**
   * Nothing was observed for a while: goes part of the way (0..1) to what its peers are like. A replica found slow and
   * therefore avoided would else never be found to have recovered.
   */
  relax(peerPrefillSlowness: number, peerStepSlowness: number, share: number): void {
    this.#prefill.relax(peerPrefillSlowness, share);
    this.#step.relax(peerStepSlowness, share);
  }
}
