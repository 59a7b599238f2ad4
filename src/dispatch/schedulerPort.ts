import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import type { RouterError } from "#src/errors/routerError.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { AttemptOutcome, LegName, Usage } from "#src/scheduler/outcome.ts";
import type { LostBy } from "#src/scheduler/placement.ts";
import type { PlacedPrefill } from "./pair/splitCall.ts";

/** What carrying needs to know of a placement; the scheduler's own says more. */
export interface Placed {
  readonly replica: {
    readonly id: string;
    readonly endpoint: Pick<EngineEndpoint, "url" | "apiKey">;
    readonly rank: number | null;
    readonly profile: Pick<EngineProfile, "kind"> | null;
  };
  /** Who computes the prompt, if not the replica; null or absent: it does. */
  readonly prefill?: PlacedPrefill | null;
}

export interface PlaceOptions {
  /** 1 is the first. */
  readonly attempt: number;
  /** Since when it waits to be executed: before now where engines were busy. */
  readonly sinceMs: number;
  /** Ids of replicas that failed this request. */
  readonly excluded: ReadonlySet<string>;
  readonly streamed: boolean;
  /** The replica was removed or restarted, or does not answer any more, before a token was seen. */
  readonly onLost: (why: LostBy, leg: LegName) => void;
}

/** What carrying asks of the scheduler, which satisfies it as it is. */
export interface SchedulerPort<P extends Placed, T> {
  /** Settles exactly once, perhaps before it returns. */
  submit(request: RouteRequest, nowMs: number, settle: (result: P | RouterError) => void, options: PlaceOptions): T;
  cancel(ticket: T, nowMs: number): void;
  /** The prefill leg of a pair was answered well. */
  prefilled(placement: P, usage: Usage | null, nowMs: number): void;
  firstToken(placement: P, nowMs: number): void;
  progress(placement: P, outputTokens: number, nowMs: number): void;
  /** Exactly once per placement. */
  finish(placement: P, outcome: AttemptOutcome, nowMs: number): void;
}
