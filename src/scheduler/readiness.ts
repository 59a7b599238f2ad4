import type { Replica } from "#src/fleet/replica.ts";

/**
 * Decode steps ahead of the end of its prompts at which a replica gets the next one: that of the step under way, in
 * which a new prompt cannot join any more, and one in which the news of it travels.
 */
const DEPTH_STEPS = 2;

/**
 * How long before a replica would have no prompt to work on it is given the next one: just so long that it never
 * idles. Whatever is sent earlier waits there as it would wait here, but cannot be put in another order any more.
 */
export function depthMs({ latency, load }: Replica, nowMs: number): number {
  const { decodingSequences, decodeKvTokens } = load.at(nowMs);
  return DEPTH_STEPS * latency.stepMs(decodingSequences, decodeKvTokens);
}

/** Whether the replica could be ready for somebody: false says no for certain, and cheaply. */
export function mayStart(replica: Replica, nowMs: number): boolean {
  // Who waits for one that has left must look for another.
  if (replica.removed || !replica.health.routable(nowMs)) return true;
  return replica.accepts(nowMs) && (replica.load.requests === 0 || readyInMs(replica, nowMs) <= 0);
}

/**
 * Whether a request that would begin there in `startsInMs` is sent now. What others have queued there is no reason to
 * hold back: who waited for that would have the last place for ever.
 */
export function isReady(replica: Replica, sequences: number, startsInMs: number, nowMs: number): boolean {
  const { load } = replica;
  if (!replica.hasRoom(sequences, nowMs)) return false;
  return load.requests === 0 || startsInMs - load.foreignPendingMs(nowMs) <= depthMs(replica, nowMs);
}

/**
 * Until our prompts there are so far that it can be given another, by prediction; negative: it could have had one before.
 * Prompts share steps, so that their fixed parts do not add up: many short ones make no replica busy.
 */
export function readyInMs(replica: Replica, nowMs: number): number {
  const { load, latency } = replica;
  const ownMs = load.at(nowMs).pendingPrefillMs - load.foreignPendingMs(nowMs);
  return ownMs - load.waitingSequences * latency.prefillBaseMs - depthMs(replica, nowMs);
}
