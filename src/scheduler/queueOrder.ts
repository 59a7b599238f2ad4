import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { ServiceClass } from "./classes.ts";

/**
 * Rank of a waiting request, least first: its arrival, put back in time by `ageingMs` for each step of priority.
 *
 * Everybody ages at one speed, so the rank needs no refresh, and starvation has a bound: a request of priority p is
 * overtaken only by those of priority q that arrived within `(q - p) · ageingMs` after it. Within a class it is FIFO,
 * and a retry keeps the place that its first arrival gave it.
 */
export function queueRank(request: RouteRequest, serviceClass: ServiceClass, ageingMs: number): number {
  return request.arrivedMs - serviceClass.priority * ageingMs;
}
