import { before } from "./flows/fairLine.ts";
import type { Place } from "./flows/fairLine.ts";
import type { Ticket } from "./ticket.ts";
import type { Line, WaitingRoom } from "./waitingRoom.ts";

/**
 * Offers room to those who wait for one model, in order, while `mayFit` says that there could be some. `tryBinding`
 * takes whom it decides out of the waiting room. Returns the decided ones.
 *
 * When the first of a line cannot be bound, neither can those behind it, which want the same; only a retry has less
 * choice than they have, so it alone is passed over.
 */
export function bindInOrder(
  room: WaitingRoom,
  model: string,
  mayFit: () => boolean,
  tryBinding: (ticket: Ticket) => "decided" | "wait",
): readonly Ticket[] {
  const all = room.lines(model);
  const open = new Set(all);
  const decided: Ticket[] = [];
  for (let next = firstOf(room, model, open); next !== null && mayFit(); next = firstOf(room, model, open)) {
    const { place, line } = next;
    if (tryBinding(place.value) === "decided") decided.push(place.value);
    else if (place.value.excluded.size === 0) open.delete(line);
    else line.passOver(place);
  }
  for (const line of all) line.restore();
  return decided;
}

function firstOf(
  room: WaitingRoom,
  model: string,
  lines: ReadonlySet<Line>,
): { readonly place: Place<Ticket>; readonly line: Line } | null {
  let found: { place: Place<Ticket>; line: Line } | null = null;
  for (const line of lines) {
    const place = line.first;
    if (place !== null && (found === null || before(room.shareOf(model), place, found.place))) found = { place, line };
  }
  return found;
}
