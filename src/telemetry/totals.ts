import { TTFT_SECONDS } from "./buckets.ts";
import type { ModelMetrics } from "./modelMetrics.ts";

/** Sums over all models since the start, from which a page makes rates. */
export interface Totals {
  readonly requests: number;
  readonly promptTokens: number;
  /** As engines reported. */
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly timeToFirstToken: {
    /** Upper bounds; the last count is above all of them. */
    readonly boundsMs: readonly number[];
    readonly counts: readonly number[];
  };
}

export function totalsOf(models: Iterable<ModelMetrics>): Totals {
  const totals = { requests: 0, promptTokens: 0, cachedTokens: 0, outputTokens: 0 };
  const counts = Array.from({ length: TTFT_SECONDS.length + 1 }, () => 0);
  for (const model of models) {
    totals.requests += model.e2eLatency.counts.reduce((sum, count) => sum + count, 0);
    totals.promptTokens += model.promptTokens.total;
    totals.cachedTokens += model.cachedReported.total;
    totals.outputTokens += model.generationTokens.total;
    model.timeToFirstToken.counts.forEach((count, at) => (counts[at]! += count));
  }
  return { ...totals, timeToFirstToken: { boundsMs: TTFT_SECONDS.map((seconds) => 1000 * seconds), counts } };
}
