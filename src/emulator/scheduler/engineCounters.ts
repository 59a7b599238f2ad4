import type { Sequence } from "./sequence.ts";

/** Cumulative since the engine's start. */
export interface EngineCounters {
  steps: number;
  submitted: number;
  finished: number;
  aborted: number;
  preemptions: number;
  prefixQueriedTokens: number;
  /** On the GPU. */
  prefixHitTokens: number;
  /** Looked for on the host, and found there. */
  hostQueriedTokens: number;
  hostHitTokens: number;
  promptTokens: number;
  generatedTokens: number;
  draftTokens: number;
  acceptedDraftTokens: number;
}

export function noCounts(): EngineCounters {
  return {
    steps: 0,
    submitted: 0,
    finished: 0,
    aborted: 0,
    preemptions: 0,
    prefixQueriedTokens: 0,
    prefixHitTokens: 0,
    hostQueriedTokens: 0,
    hostHitTokens: 0,
    promptTokens: 0,
    generatedTokens: 0,
    draftTokens: 0,
    acceptedDraftTokens: 0,
  };
}

/** Counts where the prompt of a sequence was found that has just been let in for the first time. */
export function countQuery(
  counters: EngineCounters,
  { readsCache, promptTokens, cachedTokens, restoredBlocks }: Sequence<unknown>,
  { blockTokens, hostBlocks = 0 }: { readonly blockTokens: number; readonly hostBlocks?: number },
): void {
  if (!readsCache) return;
  const restoredTokens = restoredBlocks * blockTokens;
  const localTokens = cachedTokens - restoredTokens;
  counters.prefixQueriedTokens += promptTokens;
  counters.prefixHitTokens += localTokens;
  counters.hostHitTokens += restoredTokens;
  if (hostBlocks > 0) counters.hostQueriedTokens += promptTokens - localTokens;
}
