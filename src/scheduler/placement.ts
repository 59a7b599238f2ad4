import type { PlacedPrefix } from "#src/fleet/prefixIndex.ts";
import type { Replica } from "#src/fleet/replica.ts";
import type { Reservation } from "#src/fleet/reservation.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { Decision } from "#src/routing/decision.ts";
import type { LoadAtBinding } from "./loadAtBinding.ts";
import type { LegName } from "./outcome.ts";
import type { PrefillLeg } from "./pairs/prefillLeg.ts";
import type { Queued } from "./priorityQueue.ts";
import type { StepWindow } from "./stepWatch.ts";

/** `left`: removed, or another process by now. `silent`: it does not answer any more, and others could do the work. */
export type LostBy = "left" | "silent";

/** Why a request has no prefill leg. Label values of a metric. */
export type WholeReason = "not_worth_it" | "no_pair" | (string & {});

/** One attempt of a request on one replica, or on a pair of which `replica` decodes. Ends exactly once, by `Scheduler.finish`. */
export class Placement {
  readonly request: RouteRequest;
  readonly replica: Replica;
  /** Null: the replica computes the prompt, too. */
  readonly prefill: PrefillLeg | null;
  /** Why there is none; null: there is one, or the model has no pairs. */
  readonly whole: WholeReason | null;
  readonly reservation: Reservation;
  /** What the prefix index was promised. */
  readonly prefix: PlacedPrefix;
  readonly decision: Decision;
  /** 1 is the first. */
  readonly attempt: number;
  /** Ids of replicas that failed the request before. */
  readonly excluded: ReadonlySet<string>;
  readonly boundMs: number;
  /** Time in the router's queue before it was bound. */
  readonly waitedMs: number;
  /** Requests of its model that waited when it began to. */
  readonly queuedBehind: number;
  readonly loadAtBinding: LoadAtBinding;
  /** Cached prompt tokens that the engine has to bring up from slower memory. */
  readonly restoredTokens: number;
  /** False where the answer comes in one piece, so that no first token is seen. */
  readonly streamed: boolean;
  /** NaN until the first token was really seen. */
  firstTokenMs = Number.NaN;
  /** The open observation of step times. */
  stepWindow: StepWindow | null = null;
  finished = false;
  /** Its place among those whose first token will be presumed. */
  presumed: Queued<Placement> | null = null;
  /** Prompts placed on the replica up to this one. */
  promptsBefore = 0;
  /** Its place among the live ones; -1: it has ended. */
  liveAt = -1;
  /** Its number in a recording; -1: none is made. */
  recordedAs = -1;
  /** Told when the replica is lost before a token was seen. */
  onLost: ((why: LostBy, leg: LegName) => void) | null = null;

  constructor(made: {
    request: RouteRequest;
    replica: Replica;
    prefill: PrefillLeg | null;
    whole: WholeReason | null;
    reservation: Reservation;
    prefix: PlacedPrefix;
    decision: Decision;
    attempt: number;
    excluded: ReadonlySet<string>;
    boundMs: number;
    waitedMs: number;
    queuedBehind: number;
    loadAtBinding: LoadAtBinding;
    restoredTokens: number;
    streamed: boolean;
  }) {
    this.request = made.request;
    this.replica = made.replica;
    this.prefill = made.prefill;
    this.whole = made.whole;
    this.reservation = made.reservation;
    this.prefix = made.prefix;
    this.decision = made.decision;
    this.attempt = made.attempt;
    this.excluded = made.excluded;
    this.boundMs = made.boundMs;
    this.waitedMs = made.waitedMs;
    this.queuedBehind = made.queuedBehind;
    this.loadAtBinding = made.loadAtBinding;
    this.restoredTokens = made.restoredTokens;
    this.streamed = made.streamed;
  }

  /** Cached prompt tokens that the decision counted on. */
  get cachedTokensPredicted(): number {
    return (this.prefill ?? this).reservation.cachedTokens;
  }
}
