/** Waiting that makes up for a millisecond more of work. */
export const WAIT_PER_WORK = 20;

/**
 * In which order one tenant's requests of one class leave, least first: by arrival, put off by the work that each brings.
 *
 * Everybody ages at one speed, so a rank needs no refresh, and waiting has a bound: a request of work w is overtaken only
 * by those of less work v that arrived within `(w - v) · WAIT_PER_WORK` after it. A retry keeps the place that its first
 * arrival gave it.
 *
 * @param workMs what its uncached prompt takes on the replica that it waits for, by that one's prior: equal requests are
 *   equal work whatever was learned between their arrivals
 */
export function rankOf(arrivedMs: number, workMs: number): number {
  return arrivedMs + WAIT_PER_WORK * workMs;
}
