import type { RouterError } from "#src/errors/routerError.ts";
import type { Replica } from "#src/fleet/replica.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { LegName } from "./outcome.ts";
import type { Place } from "./flows/fairLine.ts";
import type { Seat } from "./flows/modelShare.ts";
import type { LostBy, Placement } from "./placement.ts";
import type { Queued } from "./priorityQueue.ts";
import { rankOf } from "./queueOrder.ts";

export type Settle = (result: Placement | RouterError) => void;

export interface SubmitOptions {
  /** 1 (the default) is the first; a retry counts on. */
  readonly attempt?: number;
  /** When its waiting began, if not now: an engine that is busy does not end it. */
  readonly sinceMs?: number;
  /** Ids of replicas that this request may not get: those that failed it. */
  readonly excluded?: ReadonlySet<string>;
  /** Whether `firstToken` and `progress` will be reported; true by default. */
  readonly streamed?: boolean;
  /** Nothing will come from the placement's replica, and no token was seen: abort the leg, finish, place again. */
  readonly onLost?: (why: LostBy, leg: LegName) => void;
}

const NONE: ReadonlySet<string> = new Set();

/** A request on its way to a placement: `waiting` → `decided` → settled, or from either to cancelled. */
export class Ticket {
  readonly request: RouteRequest;
  readonly attempt: number;
  readonly excluded: ReadonlySet<string>;
  readonly streamed: boolean;
  readonly onLost: ((why: LostBy, leg: LegName) => void) | null;
  /** When its waiting began. */
  readonly sinceMs: number;
  /** The order of submission; breaks ties. */
  readonly sequence: number;
  /** The replica that it waits for; null: whichever has room. */
  home: Replica | null = null;
  /** Predicted time that its prompt takes there. */
  workMs = 0;
  /** Its place among those of its tenant and class that wait for the same, least first. */
  rank: number;
  /** Predicted time until that begins, as it was when it was last looked at. */
  startsInMs = 0;
  /** Prompt and expected output, all sequences together. */
  tokens = 0;
  /** Requests of its model that waited when it began to. */
  queuedBehind = 0;
  /** Its places in the waiting room; null while it does not wait. */
  seat: Seat<Ticket> | null = null;
  place: Place<Ticket> | null = null;
  inExpiry: Queued<Ticket> | null = null;
  /** Set once decided. */
  result: Placement | RouterError | null = null;
  #settled = false;
  readonly #settle: Settle;

  constructor(request: RouteRequest, nowMs: number, sequence: number, settle: Settle, options: SubmitOptions) {
    this.request = request;
    this.rank = rankOf(request.arrivedMs, 0);
    this.sinceMs = options.sinceMs ?? nowMs;
    this.sequence = sequence;
    this.#settle = settle;
    this.attempt = options.attempt ?? 1;
    this.excluded = options.excluded ?? NONE;
    this.streamed = options.streamed ?? true;
    this.onLost = options.onLost ?? null;
  }

  get waiting(): boolean {
    return this.place !== null;
  }

  /** Nobody is told any more. */
  cancel(): void {
    this.#settled = true;
  }

  /** Tells whoever submitted, exactly once. */
  settle(): void {
    if (this.#settled || this.result === null) return;
    this.#settled = true;
    this.#settle(this.result);
  }
}
