import type { Handoff } from "#src/engines/handoff/handoff.ts";
import type { Transfer } from "#src/fleet/links/transfer.ts";
import type { PlacedPrefix } from "#src/fleet/placedPrefix.ts";
import type { Replica } from "#src/fleet/replica.ts";
import type { Reservation } from "#src/fleet/reservation.ts";
import type { LoadAtBinding } from "../loadAtBinding.ts";
import type { Usage } from "../outcome.ts";

/** The side of a pair that computes the prompt; its placement's own `replica` decodes and answers the client. */
export class PrefillLeg {
  readonly replica: Replica;
  readonly reservation: Reservation;
  readonly prefix: PlacedPrefix;
  readonly handoff: Handoff;
  readonly transfer: Transfer;
  /** Predicted: from the binding until the KV can leave, and how long it is on its way. */
  readonly readyMs: number;
  readonly transferMs: number;
  readonly loadAtBinding: LoadAtBinding;
  readonly restoredTokens: number;
  /** When its engine answered; NaN: not yet. */
  prefilledMs = Number.NaN;
  /** What its engine said of the prompt; null: nothing. */
  usage: Usage | null = null;

  constructor(made: {
    replica: Replica;
    reservation: Reservation;
    prefix: PlacedPrefix;
    handoff: Handoff;
    transfer: Transfer;
    readyMs: number;
    transferMs: number;
    loadAtBinding: LoadAtBinding;
    restoredTokens: number;
  }) {
    this.replica = made.replica;
    this.reservation = made.reservation;
    this.prefix = made.prefix;
    this.handoff = made.handoff;
    this.transfer = made.transfer;
    this.readyMs = made.readyMs;
    this.transferMs = made.transferMs;
    this.loadAtBinding = made.loadAtBinding;
    this.restoredTokens = made.restoredTokens;
  }

  get prefilled(): boolean {
    return !Number.isNaN(this.prefilledMs);
  }

  /** How long its engine keeps KV that nobody fetches; null: it keeps none. */
  get leaseMs(): number | null {
    const { leaseMs } = this.handoff;
    return leaseMs === null ? null : (this.replica.endpoint.handoff?.leaseMs ?? leaseMs);
  }
}
