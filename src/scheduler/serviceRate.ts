import type { Replica } from "#src/fleet/replica.ts";

/** Completions older than a few of these no longer matter to the rate. */
const MEMORY_MS = 10_000;
/** Fewer remembered completions than this say less than the latency model does. */
const ENOUGH = 5;

/** Requests completed per millisecond of late, by exponentially fading counts. */
export class CompletionRate {
  #count = 0;
  #lastMs = Number.NaN;
  #sinceMs = Number.NaN;

  completed(nowMs: number): void {
    this.#count = this.#remembered(nowMs) + 1;
    this.#lastMs = nowMs;
    if (Number.isNaN(this.#sinceMs)) this.#sinceMs = nowMs;
  }

  /** Null: too few were seen to tell. */
  perMs(nowMs: number): number | null {
    const remembered = this.#remembered(nowMs);
    if (remembered < ENOUGH) return null;
    // The memory is not full yet just after the start; without this a young rate would read too low.
    const filled = 1 - Math.exp(-Math.max(1, nowMs - this.#sinceMs) / MEMORY_MS);
    return remembered / (MEMORY_MS * filled);
  }

  #remembered(nowMs: number): number {
    if (Number.isNaN(this.#lastMs)) return 0;
    return this.#count * Math.exp(-Math.max(0, nowMs - this.#lastMs) / MEMORY_MS);
  }
}

/**
 * Requests per millisecond that `replicas` complete with full batches, by their latency models: each request computes
 * its prompt alone and shares its decode steps with the other slots.
 */
export function predictedRatePerMs(
  replicas: readonly Replica[],
  promptTokens: number,
  expectedOutputTokens: number,
): number {
  let perMs = 0;
  for (const replica of replicas) {
    const { maxRunningRequests, kvCapacityTokens } = replica.limits();
    const slotTokens = Math.max(1, promptTokens + expectedOutputTokens / 2);
    const slots = Math.max(1, Math.min(maxRunningRequests, kvCapacityTokens / slotTokens));
    const prefillMs = replica.latency.prefillMs(promptTokens, 0);
    const decodeMs = expectedOutputTokens * replica.latency.stepMs(slots, slots * slotTokens);
    perMs += 1 / Math.max(0.01, prefillMs + decodeMs / slots);
  }
  return perMs;
}
