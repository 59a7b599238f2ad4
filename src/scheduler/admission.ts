import type { RouterError } from "#src/errors/routerError.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { ClassTable } from "./classes.ts";
import type { AttemptOutcome } from "./outcome.ts";
import type { Placement } from "./placement.ts";
import type { QueueLimits } from "./queueLimits.ts";
import { displaced, queueFull, queueTimeout, tooLate } from "./refusals.ts";
import { RetryAfter } from "./retryAfter.ts";
import type { Ticket } from "./ticket.ts";
import { WaitForecast } from "./waitForecast.ts";
import type { WaitingRoom } from "./waitingRoom.ts";

export interface Refusal {
  readonly ticket: Ticket;
  readonly error: RouterError;
}

export interface AdmissionSettings {
  readonly classes: ClassTable;
  readonly limits: QueueLimits;
}

/** Who may wait and for how long, whom it costs the place, and what is said to those that may not. */
export class Admission {
  readonly #fleet: Fleet;
  readonly #room: WaitingRoom;
  readonly #retryAfter: RetryAfter;
  readonly #forecast = new WaitForecast();
  #settings: AdmissionSettings;

  constructor(fleet: Fleet, room: WaitingRoom, settings: AdmissionSettings) {
    this.#fleet = fleet;
    this.#room = room;
    this.#retryAfter = new RetryAfter(fleet);
    this.#settings = settings;
  }

  configure(settings: AdmissionSettings): void {
    this.#settings = settings;
  }

  /**
   * Lets a request wait. Returns who is to be told that it does not: the request itself, or those whose places it got.
   * They have left the room already.
   */
  enter(ticket: Ticket, nowMs: number): readonly Refusal[] {
    const { request } = ticket;
    const late = this.#lateness(ticket, nowMs);
    if (late !== null) return [{ ticket, error: late }];
    const gone: { ticket: Ticket; rank: number; expiresMs: number }[] = [];
    for (let bound = this.#boundHit(request); bound !== null; bound = this.#boundHit(request)) {
      const last = this.#room.givesWay(request);
      if (last === null) {
        // Nobody is to go for somebody who does not come in.
        for (const { ticket: other, rank, expiresMs } of gone) this.#room.add(other, rank, expiresMs);
        return [{ ticket, error: queueFull(bound, this.retryMs(request, nowMs)) }];
      }
      gone.push({ ticket: last, rank: last.place!.rank, expiresMs: last.inExpiry!.key });
      this.#room.remove(last);
    }
    const { model, generates, maxOutputTokens, tenant, identity, sequences } = request;
    const expected = generates ? this.#fleet.outputLengths.expect(model, tenant, maxOutputTokens) : 0;
    ticket.tokens = identity.promptTokens + expected * sequences;
    ticket.queuedBehind = this.#room.ofModel(model);
    if (ticket.queuedBehind === 0) this.#forecast.begins(model, nowMs);
    this.#room.add(ticket, ticket.rank, this.#lastMs(ticket).atMs);
    return gone.map(({ ticket: other }) => ({
      ticket: other,
      error: displaced(nowMs - other.sinceMs, this.retryMs(other.request, nowMs)),
    }));
  }

  /** Why one leaves that is past its time. */
  expired(ticket: Ticket, nowMs: number): RouterError {
    const { limit } = this.#lastMs(ticket);
    const retryMs = this.retryMs(ticket.request, nowMs);
    return limit === "wait" ? queueTimeout(nowMs - ticket.sinceMs, retryMs) : tooLate(limit, ticket.workMs, retryMs);
  }

  /** Somebody who waited has left, however. */
  left(model: string, nowMs: number): void {
    if (this.#room.ofModel(model) === 0) this.#forecast.ends(model, nowMs);
  }

  /** To be called before a request that waited leaves the room. */
  placed({ request, reservation }: Placement, nowMs: number): void {
    const { share, flow } = this.#room.standingOf(request);
    const tokens = tokensOf(reservation);
    this.#room.shareOf(request.model).charge(share, flow, tokens);
    this.#forecast.bound(request.model, tokens, nowMs);
  }

  /** What a placement was charged is put right. */
  ended({ request, reservation, firstTokenMs }: Placement, outcome: AttemptOutcome, nowMs: number): void {
    if (outcome.kind === "answered") this.#retryAfter.completed(request.model, nowMs);
    const share = this.#room.knownShareOf(request.model)?.known(request.className);
    const flow = share?.flows.known(request.tenant);
    if (share === undefined || flow === undefined || flow === null) return;
    const answered = outcome.kind === "answered" && outcome.status < 300;
    const outputTokens = (answered ? outcome.usage.outputTokens : null) ?? reservation.outputTokens;
    const computed = answered || !Number.isNaN(firstTokenMs);
    share.flows.correct(flow, (computed ? reservation.promptTokens + outputTokens : 0) - tokensOf(reservation));
  }

  retryMs(request: RouteRequest, nowMs: number): number {
    return (
      this.expectedMs(request, nowMs) ?? this.#retryAfter.forRequest(request, this.#room.ofModel(request.model), nowMs)
    );
  }

  /** For a request of which nothing is known yet. */
  retryAnyMs(nowMs: number): number {
    return this.#retryAfter.forAny(this.#room.requests, nowMs);
  }

  /** Predicted wait of one more; null: too little was seen to tell. */
  expectedMs(request: Pick<RouteRequest, "model" | "className" | "tenant">, nowMs: number): number | null {
    const share = this.#room.knownShareOf(request.model);
    return share === null ? null : this.#forecast.waitMs(share, request, nowMs);
  }

  #boundHit({ bodyBytes }: RouteRequest): "requests" | "bytes" | null {
    return this.#room.boundHit(bodyBytes, this.#settings.limits);
  }

  /** When its waiting must end, and why. */
  #lastMs({ request, sinceMs, workMs }: Ticket): {
    readonly atMs: number;
    readonly limit: "wait" | "deadline" | "target";
  } {
    const { queueMs, shedLate, ttftTargetMs } = this.#settings.classes.get(request.className);
    const waitMs = sinceMs + (queueMs ?? this.#settings.limits.maxWaitMs);
    const deadlineMs = request.deadlineMs - workMs;
    const targetMs = shedLate === true ? request.arrivedMs + ttftTargetMs - workMs : Number.POSITIVE_INFINITY;
    const atMs = Math.min(waitMs, deadlineMs, targetMs);
    return { atMs, limit: atMs === waitMs ? "wait" : atMs === deadlineMs ? "deadline" : "target" };
  }

  /** Null: it may be in time. */
  #lateness(ticket: Ticket, nowMs: number): RouterError | null {
    const { atMs, limit } = this.#lastMs(ticket);
    if (atMs <= nowMs) return this.expired(ticket, nowMs);
    if (limit === "wait") return null;
    const startsMs = nowMs + ticket.startsInMs;
    if (startsMs <= atMs) return null;
    return tooLate(limit, ticket.startsInMs + ticket.workMs, startsMs - atMs);
  }
}

function tokensOf({ promptTokens, expectedOutputTokens, sequences }: Placement["reservation"]): number {
  return promptTokens + expectedOutputTokens * sequences;
}
