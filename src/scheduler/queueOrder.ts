import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { ServiceClass } from "./classes.ts";
import type { QueueLimits } from "./queueLimits.ts";

/** What the order of the queue may depend on. */
export interface Waiting {
  readonly request: RouteRequest;
  readonly serviceClass: ServiceClass;
  /** When its waiting began; a retry keeps that of its first attempt. */
  readonly sinceMs: number;
  /**
   * What its uncached prompt takes on the replica that it waits for, by that one's prior: equal requests are equal work
   * whatever was learned between their arrivals.
   */
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

/** Waiting that makes up for a millisecond more of work. */
export const WAIT_PER_WORK = 20;

/**
 * A request's arrival, put back in time by `ageingMs` for each step of priority and put off by the work that it brings.
 *
 * Everybody ages at one speed, so the rank needs no refresh, and starvation has a bound: a request of priority p and
 * work w is overtaken only by those of priority q and work v that arrived within
 * `(q - p) · ageingMs + (w - v) · WAIT_PER_WORK` after it. A retry keeps the place that its first arrival gave it.
 */
export const LEAST_WORK_FIRST: QueueOrder = {
  rank: ({ request, serviceClass, workMs }, { ageingMs }) =>
    request.arrivedMs + WAIT_PER_WORK * workMs - serviceClass.priority * ageingMs,
  served: () => undefined,
};
