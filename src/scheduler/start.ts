import type { Replica } from "#src/fleet/replica.ts";
import { COLUMN, TERMS } from "#src/routing/terms/term.ts";
import type { Weighed } from "./binder.ts";
import { depthMs, readyInMs } from "./readiness.ts";

/** Where the prompt of a request that was weighed would be computed, and when that could begin. */
export interface Start {
  readonly replica: Replica;
  readonly cachedTokens: number;
  /** Predicted time of the prompt itself. */
  readonly workMs: number;
  /** From now, were it next in the router's line. */
  readonly startsInMs: number;
  /** Of those that go before it in that line. */
  readonly lineMs: number;
}

/** Of a choice that has prices. */
export function start({ takesPair, pair, alone, input }: Weighed, nowMs: number): Start {
  if (takesPair && pair !== null) {
    const { prefill: replica, gpuTokens: cachedTokens } = pair;
    const workMs = replica.latency.prefillMs(input.request.identity.promptTokens - cachedTokens, cachedTokens);
    return {
      replica,
      cachedTokens,
      workMs,
      startsInMs: readyInMs(replica, nowMs) + depthMs(replica, nowMs),
      lineMs: 0,
    };
  }
  const { index, prices } = alone!;
  const at = index * TERMS.length;
  const lineMs = input.lineMs?.[index] ?? 0;
  return {
    replica: input.candidates[index]!,
    cachedTokens: input.cachedTokens[index]!,
    workMs: prices!.terms[at + COLUMN.prefill]!,
    startsInMs: prices!.terms[at + COLUMN.queue]! - lineMs,
    lineMs,
  };
}
