import type { Sequence } from "#src/emulator/scheduler/sequence.ts";
import type { RouterError } from "#src/errors/routerError.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import type { Arrival } from "../workload/arrival.ts";
import type { ModelledRouter } from "./modelledRouter.ts";
import type { RequestRecord } from "./requestRecord.ts";

/** One request on its way: waiting in its router → on its way to an engine → there → ended. */
export class Flight {
  readonly arrival: Arrival;
  readonly router: ModelledRouter;
  readonly request: RouteRequest;
  /** Of prompt and answer. */
  readonly chain: BigUint64Array;
  /** Likewise; null where engines publish no events, for then nobody reads them. */
  readonly tokens: Uint32Array | null;
  readonly record: RequestRecord;
  readonly excluded = new Set<string>();
  /** What made the last attempt fail: says more than "no replica is left". */
  failure: RouterError | null = null;
  placement: Placement | null = null;
  sequence: Sequence<Flight> | null = null;
  /** When its output was last reported to the scheduler. */
  progressMs = Number.NEGATIVE_INFINITY;

  constructor(made: {
    arrival: Arrival;
    router: ModelledRouter;
    request: RouteRequest;
    chain: BigUint64Array;
    tokens: Uint32Array | null;
    record: RequestRecord;
  }) {
    this.arrival = made.arrival;
    this.router = made.router;
    this.request = made.request;
    this.chain = made.chain;
    this.tokens = made.tokens;
    this.record = made.record;
  }

  /** Whether the client has got a part of its answer. */
  get started(): boolean {
    return !Number.isNaN(this.record.firstTokenMs);
  }
}
