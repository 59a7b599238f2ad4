/** Bounds of what waits in the router, over all models. */
export interface QueueLimits {
  /** Zero: nobody waits; a full fleet refuses at once. */
  readonly maxRequests: number;
  /** Bodies of waiting requests, together. */
  readonly maxBytes: number;
  /** Unless the class says otherwise. */
  readonly maxWaitMs: number;
}

/** Thirty seconds is what common clients and proxies wait before they give up by themselves. */
export const QUEUE_LIMITS: QueueLimits = {
  maxRequests: 2_000,
  maxBytes: 256 * 1024 * 1024,
  maxWaitMs: 30_000,
};
