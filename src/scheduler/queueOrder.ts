import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { ServiceClass } from "./classes.ts";
import type { QueueLimits } from "./queueLimits.ts";

/** What the order of the queue may depend on. */
export interface Waiting {
  readonly request: RouteRequest;
  readonly serviceClass: ServiceClass;
  /** When its waiting began; a retry keeps that of its first attempt. */
  readonly sinceMs: number;
  /** Predicted work on the replica that suits it best: its uncached prompt, and its share of decode steps. */
  readonly workMs: number;
}

/** In which order requests that wait are offered room. May keep state of bounded size. */
export interface QueueOrder {
  /**
   * Least first. Asked when a request begins to wait, and again when its predicted work has changed, so an answer may
   * depend on what was served meanwhile; between the two the order does not change.
   */
  rank(waiting: Waiting, limits: QueueLimits): number;
  /** It was given to a replica, whether it waited before or not. */
  served(waiting: Waiting, nowMs: number): void;
}

/**
 * A request's arrival, put back in time by `ageingMs` for each step of priority.
 *
 * Everybody ages at one speed, so the rank needs no refresh, and starvation has a bound: a request of priority p is
 * overtaken only by those of priority q that arrived within `(q - p) · ageingMs` after it. Within a class it is FIFO,
 * and a retry keeps the place that its first arrival gave it.
 */
export const BY_ARRIVAL: QueueOrder = {
  rank: ({ request, serviceClass }, { ageingMs }) => request.arrivedMs - serviceClass.priority * ageingMs,
  served: () => undefined,
};
