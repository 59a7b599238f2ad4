import { RouterError } from "#src/errors/routerError.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { Replica } from "./replica.ts";
import { Reservation } from "./reservation.ts";

/** A request that outlived its expectation is expected to go on for this share of it (output lengths have heavy tails). */
const OVERTIME_SHARE = 1 / 8;

/** Multiples of 1/1024 add and subtract without rounding, so that counters return to exactly zero. */
function dyadic(value: number): number {
  return Math.round(value * 1024) / 1024;
}

/**
 * All reservations. Load counts from the moment of choice and is released exactly once, by incarnation. Everything is
 * O(1). The replica's own `load` holds the sums.
 */
export class Ledger {
  readonly #maxReservations: number;
  #reservations = 0;

  constructor(maxReservations = 100_000) {
    this.#maxReservations = maxReservations;
  }

  /** Reservations not yet released, those of dead incarnations included. */
  get size(): number {
    return this.#reservations;
  }

  /** Throws RouterError `queue_full` at the bound. */
  reserve(
    request: RouteRequest,
    replica: Replica,
    cachedTokens: number,
    expectedOutputTokens: number,
    nowMs: number,
  ): Reservation {
    if (this.#reservations >= this.#maxReservations)
      throw new RouterError("queue_full", "The router carries as many requests as it is configured to.", {
        fault: "router",
        httpStatus: 429,
        retryable: true,
        retryAfterMs: 1000,
      });
    const promptTokens = Math.round(request.identity.promptTokens);
    const cached = Math.max(0, Math.min(promptTokens, Math.round(cachedTokens)));
    const expected = request.generates ? Math.max(1, Math.round(expectedOutputTokens)) : 0;
    const reservation = new Reservation({
      requestId: request.id,
      replica,
      sequences: request.sequences,
      promptTokens,
      cachedTokens: cached,
      prefillMs: dyadic(replica.latency.prefillMs(promptTokens - cached, cached)),
      expectedOutputTokens: expected,
      maxOutputTokens: request.maxOutputTokens ?? Number.POSITIVE_INFINITY,
      reservedMs: nowMs,
      trial: replica.health.bound(nowMs),
    });
    reservation.remainingTokens = expected * request.sequences;
    this.#reservations++;

    const load = replica.load;
    if (load.waiting.first === null) load.headSinceMs = nowMs;
    load.waiting.push(reservation);
    load.requests++;
    load.sequences += reservation.sequences;
    load.waitingSequences += reservation.sequences;
    load.pendingPrefillTokens += reservation.newTokens;
    load.pendingPrefillMs += reservation.prefillMs;
    load.reservedKvTokens += promptTokens + reservation.remainingTokens;
    load.remainingOutputTokens += reservation.remainingTokens;
    load.learnSize(reservation);
    load.changed(nowMs);
    return reservation;
  }

  /** The prompt is processed. Later calls do nothing. */
  firstToken(reservation: Reservation, nowMs: number): void {
    if (reservation.phase !== "waiting") return;
    if (!reservation.live) return;
    const load = reservation.replica.load;
    this.#leaveWaiting(reservation, nowMs);
    reservation.phase = "decoding";
    reservation.firstTokenMs = nowMs;
    load.decoding.push(reservation);
    load.decodingSequences += reservation.sequences;
    load.decodeKvTokens += reservation.promptTokens;
    load.changed(nowMs);
  }

  /** `outputTokens` seen so far, all sequences together; it never falls. The first token is implied. */
  progress(reservation: Reservation, outputTokens: number, nowMs: number): void {
    if (reservation.phase === "waiting") this.firstToken(reservation, nowMs);
    if (reservation.phase !== "decoding" || !reservation.live) return;
    const grown = Math.floor(outputTokens) - reservation.outputTokens;
    if (!(grown > 0)) return;
    const load = reservation.replica.load;
    reservation.outputTokens += grown;
    load.decodeKvTokens += grown;

    const expected = reservation.expectedOutputTokens * reservation.sequences;
    const overtime = Math.min(
      Math.max(1, Math.ceil(expected * OVERTIME_SHARE)),
      Math.max(0, reservation.maxOutputTokens * reservation.sequences - reservation.outputTokens),
    );
    const remaining = Math.max(expected - reservation.outputTokens, overtime);
    const change = remaining - reservation.remainingTokens;
    reservation.remainingTokens = remaining;
    load.remainingOutputTokens += change;
    load.reservedKvTokens += change + grown;
    load.changed(nowMs);
  }

  /** The engine has answered and takes no slot any more, but keeps the prompt's KV. Later calls do nothing. */
  hold(reservation: Reservation, nowMs: number): void {
    if (reservation.phase !== "waiting" && reservation.phase !== "decoding") return;
    if (!reservation.live) return;
    const load = reservation.replica.load;
    this.#leaveSlots(reservation, nowMs);
    load.reservedKvTokens -= reservation.outputTokens + reservation.remainingTokens;
    reservation.phase = "held";
    load.changed(nowMs);
  }

  /** However the request ended. Exactly once: later calls, and those of dead incarnations, change no load. */
  release(reservation: Reservation, nowMs: number): void {
    if (reservation.phase === "released") return;
    this.#reservations--;
    const { live, phase } = reservation;
    if (live) {
      const load = reservation.replica.load;
      load.reservedKvTokens -= reservation.promptTokens;
      if (phase !== "held") {
        this.#leaveSlots(reservation, nowMs);
        load.reservedKvTokens -= reservation.outputTokens + reservation.remainingTokens;
      }
      load.changed(nowMs);
    }
    reservation.phase = "released";
    // A trial that ended without a verdict must not keep the replica half open for ever.
    if (live && reservation.trial) reservation.replica.health.apply({ kind: "request_dropped" }, nowMs);
  }

  #leaveSlots(reservation: Reservation, nowMs: number): void {
    const load = reservation.replica.load;
    if (reservation.phase === "waiting") this.#leaveWaiting(reservation, nowMs);
    else {
      load.decoding.remove(reservation);
      load.decodingSequences -= reservation.sequences;
      load.decodeKvTokens -= reservation.promptTokens + reservation.outputTokens;
    }
    load.requests--;
    load.sequences -= reservation.sequences;
    load.remainingOutputTokens -= reservation.remainingTokens;
  }

  #leaveWaiting(reservation: Reservation, nowMs: number): void {
    const load = reservation.replica.load;
    const wasHead = load.waiting.first === reservation;
    load.waiting.remove(reservation);
    load.waitingSequences -= reservation.sequences;
    load.pendingPrefillTokens -= reservation.newTokens;
    load.pendingPrefillMs -= reservation.prefillMs;
    if (load.waiting.first === null) load.headSinceMs = Number.NaN;
    else if (wasHead) load.headSinceMs = nowMs;
  }
}
