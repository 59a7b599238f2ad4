import type { Replica } from "#src/fleet/replica.ts";
import { mayStart } from "./readiness.ts";
import type { Ticket } from "./ticket.ts";
import type { Line, WaitingRoom } from "./waitingRoom.ts";

/** Those that are offered room in one pass over a line; the rest is asked at the next. */
const MAX_OFFERS = 64;
/** Places of other lines, as parts of their length, whose holders an idle replica is offered to. */
const STOLEN_FROM = [1, 0.5, 0.25];
/** Lines, longest first, that an idle replica takes from. */
const MAX_LINES = 3;

/** `decided`: it waits no more. Else the replica that it waits for; null: for any that takes requests at all. */
export type Offer = "decided" | Replica | null;

/** Offers room on one replica to those that wait for it, and then, if it is idle, to others that could do better here. */
export function serveReplica(
  room: WaitingRoom,
  model: string,
  replica: Replica,
  offer: (ticket: Ticket) => Offer,
  nowMs: number,
): readonly Ticket[] {
  const decided: Ticket[] = [];
  const line = room.lineFor(model, replica);
  if (line !== null) serveLine(line, replica, offer, () => mayStart(replica, nowMs), decided);
  if (room.lineFor(model, replica) === null && mayStart(replica, nowMs))
    takeFromOthers(room, model, replica, offer, decided);
  return decided;
}

/** Those that wait for no replica of their own: all that serve them had asked to be left alone. */
export function serveHomeless(line: Line, offer: (ticket: Ticket) => Offer): readonly Ticket[] {
  const decided: Ticket[] = [];
  serveLine(line, null, offer, () => true, decided);
  return decided;
}

/** `offer` moves who waits for another replica from now on, so each turn of the loop makes the line shorter or is the last. */
function serveLine(
  line: Line,
  home: Replica | null,
  offer: (ticket: Ticket) => Offer,
  goesOn: () => boolean,
  decided: Ticket[],
): void {
  for (let offers = 0; offers < MAX_OFFERS && line.first !== null && goesOn(); offers++) {
    const ticket = line.first.value;
    const result = offer(ticket);
    if (result === "decided") decided.push(ticket);
    else if (result === home) return;
  }
}

function takeFromOthers(
  room: WaitingRoom,
  model: string,
  replica: Replica,
  offer: (ticket: Ticket) => Offer,
  decided: Ticket[],
): void {
  const lines = [...room.linesByReplica(model)].filter(([home]) => home !== replica);
  lines.sort(([, a], [, b]) => b.size - a.size);
  for (const [, line] of lines.slice(0, MAX_LINES)) {
    for (const part of STOLEN_FROM) {
      const place = line.about(part);
      if (place !== null && offer(place.value) === "decided") {
        decided.push(place.value);
        return;
      }
    }
  }
}
