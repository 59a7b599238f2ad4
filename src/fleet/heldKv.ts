import type { Ledger } from "./ledger.ts";
import type { Reservation } from "./reservation.ts";

interface Held {
  readonly reservation: Reservation;
  readonly untilMs: number;
}

/**
 * KV that prefill engines keep although the request it was made for has ended before it was fetched: nobody can tell them
 * to drop it, so it counts as taken until their lease is over. The ledger bounds its size.
 */
export class HeldKv {
  readonly #ledger: Ledger;
  /** By time of expiry. */
  readonly #held: Held[] = [];

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  get size(): number {
    return this.#held.length;
  }

  add(reservation: Reservation, untilMs: number): void {
    let at = this.#held.length;
    while (at > 0 && this.#held[at - 1]!.untilMs > untilMs) at--;
    this.#held.splice(at, 0, { reservation, untilMs });
  }

  /** To be called now and then. */
  expire(nowMs: number): void {
    const live = this.#held.findIndex(({ untilMs }) => untilMs > nowMs);
    for (const { reservation } of this.#held.splice(0, live < 0 ? this.#held.length : live))
      this.#ledger.release(reservation, nowMs);
  }
}
