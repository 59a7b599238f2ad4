import type { Replica } from "#src/fleet/replica.ts";

/** What was true on the replica when the placement was made; what is learned from its times depends on it. */
export interface LoadAtBinding {
  /** Predicted time until the prompts placed before this one are computed. */
  readonly queueMs: number;
  readonly decodingSequences: number;
  readonly decodeKvTokens: number;
}

export function loadAtBinding(replica: Replica, nowMs: number): LoadAtBinding {
  const { pendingPrefillMs, decodingSequences, decodeKvTokens } = replica.load.at(nowMs);
  return { queueMs: pendingPrefillMs, decodingSequences, decodeKvTokens };
}
