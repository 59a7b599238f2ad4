import type { Ticket } from "./ticket.ts";
import type { Lane, WaitingRoom } from "./waitingRoom.ts";

function leastFirst(lanes: ReadonlySet<Lane>): Ticket | null {
  let least: Lane["first"] = null;
  for (const { first } of lanes) {
    if (first === null) continue;
    if (least === null || first.key < least.key || (first.key === least.key && first.sequence < least.sequence))
      least = first;
  }
  return least?.value ?? null;
}

/**
 * Offers room to those who wait for one model, in order, while `mayFit` says that there could be some. `tryBinding`
 * takes whom it decides out of the waiting room. Returns the decided ones.
 *
 * When the first of a lane cannot be bound, neither can those behind it, which want the same; only a retry has less
 * choice than they have, so it alone is stepped over.
 */
export function bindInOrder(
  room: WaitingRoom,
  model: string,
  mayFit: () => boolean,
  tryBinding: (ticket: Ticket) => "decided" | "wait",
): readonly Ticket[] {
  const lanes = new Set(room.lanes(model));
  const decided: Ticket[] = [];
  const steppedOver: { ticket: Ticket; rank: number; expiresMs: number }[] = [];
  for (let ticket = leastFirst(lanes); ticket !== null && mayFit(); ticket = leastFirst(lanes)) {
    if (tryBinding(ticket) === "decided") decided.push(ticket);
    else if (ticket.excluded.size === 0) lanes.delete(room.laneOf(ticket));
    else {
      steppedOver.push({ ticket, rank: ticket.inLane!.key, expiresMs: ticket.inExpiry!.key });
      room.remove(ticket);
    }
  }
  for (const { ticket, rank, expiresMs } of steppedOver) room.add(ticket, rank, expiresMs);
  return decided;
}
