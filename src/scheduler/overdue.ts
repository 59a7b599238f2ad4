import type { Placement } from "./placement.ts";

/** A prompt that takes long keeps some engines from answering their health route: predictions may be wrong by this factor. */
const PATIENCE = 2;
/** ... and by this much where they are short: a batch that others filled, a prompt of which nothing was known. */
const LEAST_PATIENCE_MS = 5_000;

/** Whether the first byte of the answer should have come long ago: of an answer in one piece, when all of it is there. */
export function overdue(placement: Placement, nowMs: number): boolean {
  const { reservation, loadAtBinding, replica, streamed, boundMs, prefill } = placement;
  const { queueMs, decodingSequences, decodeKvTokens } = loadAtBinding;
  const outputMs = streamed
    ? 0
    : reservation.expectedOutputTokens * replica.latency.stepMs(decodingSequences, decodeKvTokens);
  const promptMs = prefill === null ? reservation.prefillMs : prefill.readyMs + prefill.transferMs;
  return nowMs - boundMs > LEAST_PATIENCE_MS + PATIENCE * (queueMs + promptMs + outputMs);
}
