import type { RouterError } from "#src/errors/routerError.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { AttemptOutcome } from "./outcome.ts";
import type { Placement } from "./placement.ts";

/** Told of what the scheduler did, after the fact. Must not call back into it. */
export interface SchedulerObserver {
  /** A replica was chosen. `placement.waitedMs` is zero where nothing was in the way. */
  bound(placement: Placement): void;
  /** The prefill leg of a pair was answered. */
  prefilled?(placement: Placement, nowMs: number): void;
  /** All slots are taken: it waits now. */
  queued(request: RouteRequest): void;
  /** Null: refused by `admit`, before anything was known of it but its size. */
  refused(request: RouteRequest | null, error: RouterError): void;
  finished(placement: Placement, outcome: AttemptOutcome, nowMs: number): void;
}

export const UNOBSERVED: SchedulerObserver = {
  bound: () => undefined,
  queued: () => undefined,
  refused: () => undefined,
  finished: () => undefined,
};
