import type { Replica } from "./replica.ts";

/**
 * `waiting`: its prompt is not processed yet. `held`: it was answered, and only its KV stays, for another replica to fetch.
 * `released` is final.
 */
export type ReservationPhase = "waiting" | "decoding" | "held" | "released";

/**
 * What a placed request holds on its replica. Only the ledger writes to it. All token counts are whole numbers, and
 * per request, not per sequence, unless they say so.
 */
export class Reservation {
  readonly requestId: string;
  readonly replica: Replica;
  /** Of the replica when this was made; a reservation of a dead incarnation changes nothing any more. */
  readonly incarnation: number;
  readonly sequences: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Predicted when it was made. */
  readonly prefillMs: number;
  /** Output tokens expected of each sequence. */
  readonly expectedOutputTokens: number;
  /** Limit of output tokens of each sequence; Infinity where the client set none. */
  readonly maxOutputTokens: number;
  readonly reservedMs: number;
  /** True: the one request by which a quarantined replica is tried. */
  readonly trial: boolean;

  phase: ReservationPhase = "waiting";
  firstTokenMs = Number.NaN;
  /** Output tokens seen so far, all sequences together. */
  outputTokens = 0;
  /** What this counts for in the replica's `remainingOutputTokens`. */
  remainingTokens = 0;

  /** Neighbours in the replica's list of its phase. */
  before: Reservation | null = null;
  after: Reservation | null = null;

  constructor(made: {
    requestId: string;
    replica: Replica;
    sequences: number;
    promptTokens: number;
    cachedTokens: number;
    prefillMs: number;
    expectedOutputTokens: number;
    maxOutputTokens: number;
    reservedMs: number;
    trial: boolean;
  }) {
    this.requestId = made.requestId;
    this.replica = made.replica;
    this.incarnation = made.replica.incarnation;
    this.sequences = made.sequences;
    this.promptTokens = made.promptTokens;
    this.cachedTokens = made.cachedTokens;
    this.prefillMs = made.prefillMs;
    this.expectedOutputTokens = made.expectedOutputTokens;
    this.maxOutputTokens = made.maxOutputTokens;
    this.reservedMs = made.reservedMs;
    this.trial = made.trial;
  }

  /** False once it was released or its replica restarted, was removed or came back as another process. */
  get live(): boolean {
    return this.phase !== "released" && this.incarnation === this.replica.incarnation && !this.replica.removed;
  }

  /** Prompt tokens to compute. */
  get newTokens(): number {
    return this.promptTokens - this.cachedTokens;
  }
}

/** Reservations in order of joining; joining and leaving are O(1). */
export class ReservationList {
  first: Reservation | null = null;
  last: Reservation | null = null;

  push(reservation: Reservation): void {
    reservation.before = this.last;
    reservation.after = null;
    if (this.last === null) this.first = reservation;
    else this.last.after = reservation;
    this.last = reservation;
  }

  remove(reservation: Reservation): void {
    if (reservation.before === null) this.first = reservation.after;
    else reservation.before.after = reservation.after;
    if (reservation.after === null) this.last = reservation.before;
    else reservation.after.before = reservation.before;
    reservation.before = null;
    reservation.after = null;
  }
}
