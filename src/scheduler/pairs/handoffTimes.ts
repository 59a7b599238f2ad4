import type { Replica } from "#src/fleet/replica.ts";
import type { Placement } from "../placement.ts";

/** Of the step that is under way when KV arrives, half is left on average. */
const STEP_LEFT = 0.5;

/**
 * What of the time from the sending of a decode leg to its first token is no transfer: the rest of the step under way,
 * and the step that yields the token. NaN where it also queued, so that nobody can tell.
 */
export function decodeShareMs({ replica, loadAtBinding, reservation }: Placement, nowMs: number): number {
  const { decodingSequences, decodeKvTokens } = replica.load.at(nowMs);
  if (loadAtBinding.queueMs > 0 || full(replica, nowMs)) return Number.NaN;
  const others = Math.max(0, decodingSequences - reservation.sequences);
  const left = others > 0 ? STEP_LEFT * replica.latency.stepMs(others, decodeKvTokens) : 0;
  return left + replica.latency.stepMs(others + 1, decodeKvTokens);
}

function full(replica: Replica, nowMs: number): boolean {
  return replica.load.slotsTaken(nowMs) >= replica.limits().maxRunningRequests;
}
