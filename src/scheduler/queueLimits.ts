/** Bounds of what waits in the router, over all models. */
export interface QueueLimits {
  /** Zero: nobody waits; a full fleet refuses at once. */
  readonly maxRequests: number;
  /** Bodies of waiting requests, together. */
  readonly maxBytes: number;
  readonly maxWaitMs: number;
  /** Waiting that is worth one step of priority. */
  readonly ageingMs: number;
}

/**
 * Thirty seconds is what common clients and proxies wait before they give up by themselves. Two steps of priority
 * (interactive over batch) are worth ten of them, so batch work is served before it times out.
 */
export const QUEUE_LIMITS: QueueLimits = {
  maxRequests: 2_000,
  maxBytes: 256 * 1024 * 1024,
  maxWaitMs: 30_000,
  ageingMs: 5_000,
};
