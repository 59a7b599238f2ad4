import type { Replica } from "#src/fleet/replica.ts";
import type { Ticket } from "./ticket.ts";
import type { Lane } from "./waitingRoom.ts";

/** Predicted time that a request waits in the router for a replica. */
export type LineMs = (replica: Replica, cachedTokens: number) => number;

/** So many of a line are looked at; of a longer one they stand for all. */
const SAMPLE = 64;

/** Predicted time that the replica of a line works on those of it that go before a request of this rank. */
export function aheadMs(line: Lane, rank: number, self: Ticket): number {
  const looked = Math.min(line.size, SAMPLE);
  let sum = 0;
  for (let nth = 0; nth < looked; nth++) {
    const { key, value } = line.at(Math.floor((nth * line.size) / looked))!;
    if (key < rank && value !== self) sum += value.workMs;
  }
  return (sum * line.size) / Math.max(1, looked);
}
