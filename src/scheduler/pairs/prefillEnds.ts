import type { Fleet } from "#src/fleet/fleet.ts";
import type { PrefillLeg } from "./prefillLeg.ts";

/** Its KV is on the decode side: nothing of it is held any more. Later calls do nothing. */
export function fetched({ reservation }: PrefillLeg, fleet: Fleet, nowMs: number): void {
  fleet.ledger.release(reservation, nowMs);
}

/**
 * The request is over and its KV was not fetched, or nobody knows. An engine that keeps it for somebody cannot be told
 * to let go, so it counts as held until the lease ends; the others have let go already.
 */
export function dropPrefill(leg: PrefillLeg, fleet: Fleet, nowMs: number): void {
  const { reservation, transfer, prefix, prefilledMs, leaseMs } = leg;
  transfer.end(nowMs);
  if (!reservation.live || !leg.prefilled) fleet.index.abandon(prefix);
  if (reservation.phase === "held" && leaseMs !== null) fleet.heldKv.add(reservation, prefilledMs + leaseMs);
  else fleet.ledger.release(reservation, nowMs);
}
