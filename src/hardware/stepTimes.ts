import fits from "./engineFits.json" with { type: "json" };

/**
 * Step-time coefficients of a model on a GPU, in milliseconds, tokens in thousands.
 * `prefillMs(u, ctx) = a + b·u + c·u·(2·ctx + u)` for u new tokens after ctx cached ones;
 * `stepMs(B, K) = d + e·B + f·K` for B sequences holding K thousand tokens.
 */
export interface StepTimes {
  readonly prefillBaseMs: number;
  readonly prefillMsPerKtok: number;
  readonly prefillMsPerKtok2: number;
  readonly stepBaseMs: number;
  readonly stepMsPerSequence: number;
  readonly stepMsPerKtok: number;
}

function fromRow(row: readonly number[]): StepTimes {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = row;
  // A negative quadratic part (70b on a100_tp8) is an artefact of the fit; extrapolated it would make long prompts free.
  return {
    prefillBaseMs: a,
    prefillMsPerKtok: b,
    prefillMsPerKtok2: Math.max(0, c),
    stepBaseMs: d,
    stepMsPerSequence: e,
    stepMsPerKtok: f,
  };
}

/** Priors by `model/gpu_tpN`, e.g. `qwen3-32b/h200_tp2`. The file's `_about` is its only non-table entry. */
export const PRIORS: ReadonlyMap<string, StepTimes> = new Map(
  Object.entries<string | Record<string, readonly number[]>>(fits).flatMap(([model, byGpu]) =>
    typeof byGpu === "string"
      ? []
      : Object.entries(byGpu).map(([gpu, row]): [string, StepTimes] => [`${model}/${gpu}`, fromRow(row)]),
  ),
);

/** For a replica of which nothing is known: llama-3.1-8b on one H100, the middle of the table. */
export const GENERIC_PRIOR: StepTimes =
  PRIORS.get("llama-3.1-8b/h100_tp1") ?? fromRow([2.7, 15.83, 0.627, 5.87, 0.0081, 0.04457]);

/** Compute time of `newTokens` prompt tokens after `cachedTokens` cached ones. */
export function prefillMs(times: StepTimes, newTokens: number, cachedTokens: number): number {
  if (newTokens <= 0) return 0;
  const u = newTokens / 1000;
  return (
    times.prefillBaseMs + times.prefillMsPerKtok * u + times.prefillMsPerKtok2 * u * ((2 * cachedTokens) / 1000 + u)
  );
}

/** One decode step of `sequences` sequences that hold `kvTokens` tokens together. */
export function stepMs(times: StepTimes, sequences: number, kvTokens: number): number {
  return times.stepBaseMs + times.stepMsPerSequence * sequences + (times.stepMsPerKtok * kvTokens) / 1000;
}
