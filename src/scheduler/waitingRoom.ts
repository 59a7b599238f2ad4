import type { Replica } from "#src/fleet/replica.ts";
import { PriorityQueue } from "./priorityQueue.ts";
import type { QueueLimits } from "./queueLimits.ts";
import type { Ticket } from "./ticket.ts";

/** Those that wait for the same: one replica, or any that serves their model and adapter. */
export type Lane = PriorityQueue<Ticket>;

/** Everybody that waits, in order, with bounds. Decides nothing about who goes where. */
export class WaitingRoom {
  readonly #lanes = new Map<string, Map<Replica | string, Lane>>();
  readonly #byModel = new Map<string, number>();
  readonly #expiry = new PriorityQueue<Ticket>();
  #bytes = 0;

  get requests(): number {
    return this.#expiry.size;
  }

  /** Bodies of those that wait, together. */
  get bytes(): number {
    return this.#bytes;
  }

  get nextExpiryMs(): number | null {
    return this.#expiry.first?.key ?? null;
  }

  /** The bound that one more request of `bodyBytes` would break; null: it may wait. */
  boundHit(bodyBytes: number, limits: QueueLimits): "requests" | "bytes" | null {
    if (this.requests >= limits.maxRequests) return "requests";
    return this.#bytes + bodyBytes > limits.maxBytes ? "bytes" : null;
  }

  add(ticket: Ticket, rank: number, expiresMs: number): void {
    const { model, bodyBytes } = ticket.request;
    ticket.inLane = this.laneOf(ticket).push(ticket, rank, ticket.sequence);
    ticket.inExpiry = this.#expiry.push(ticket, expiresMs, ticket.sequence);
    this.#bytes += bodyBytes;
    this.#byModel.set(model, this.ofModel(model) + 1);
  }

  /** Harmless for one that does not wait. */
  remove(ticket: Ticket): void {
    if (ticket.inLane === null || ticket.inExpiry === null) return;
    const { model, bodyBytes } = ticket.request;
    this.laneOf(ticket).remove(ticket.inLane);
    this.#expiry.remove(ticket.inExpiry);
    ticket.inLane = null;
    ticket.inExpiry = null;
    this.#bytes -= bodyBytes;
    const left = this.ofModel(model) - 1;
    if (left > 0) this.#byModel.set(model, left);
    else this.#byModel.delete(model);
    this.#dropEmpty(model, laneKey(ticket));
  }

  /** It waits for another replica now, or has more or less to do there. */
  move(ticket: Ticket, home: Replica | null, workMs: number, rank: number): void {
    if (ticket.inLane === null) return;
    this.laneOf(ticket).remove(ticket.inLane);
    this.#dropEmpty(ticket.request.model, laneKey(ticket));
    ticket.home = home;
    ticket.workMs = workMs;
    ticket.inLane = this.laneOf(ticket).push(ticket, rank, ticket.sequence);
  }

  /** One that is past its time, least first; null if nobody is. */
  expired(nowMs: number): Ticket | null {
    const first = this.#expiry.first;
    return first !== null && first.key <= nowMs ? first.value : null;
  }

  /** How many wait for a model. */
  ofModel(model: string): number {
    return this.#byModel.get(model) ?? 0;
  }

  models(): readonly string[] {
    return [...this.#byModel.keys()];
  }

  lanes(model: string): readonly Lane[] {
    return [...(this.#lanes.get(model)?.values() ?? [])];
  }

  laneOf(ticket: Ticket): Lane {
    return this.#lane(ticket.request.model, laneKey(ticket));
  }

  /** Whether somebody waits for this one replica. */
  awaits(replica: Replica): boolean {
    for (const lanes of this.#lanes.values()) if (lanes.has(replica)) return true;
    return false;
  }

  /** Null: nobody waits for this replica. */
  lineFor(model: string, replica: Replica): Lane | null {
    return this.#lanes.get(model)?.get(replica) ?? null;
  }

  /** Lines for single replicas, with whom they wait for. */
  *lines(model: string): Generator<readonly [Replica, Lane]> {
    for (const [key, lane] of this.#lanes.get(model) ?? []) if (typeof key !== "string") yield [key, lane];
  }

  tickets(): readonly Ticket[] {
    return this.#expiry.values();
  }

  #lane(model: string, key: Replica | string): Lane {
    let lanes = this.#lanes.get(model);
    if (lanes === undefined) this.#lanes.set(model, (lanes = new Map()));
    let lane = lanes.get(key);
    if (lane === undefined) lanes.set(key, (lane = new PriorityQueue()));
    return lane;
  }

  #dropEmpty(model: string, key: Replica | string): void {
    const lanes = this.#lanes.get(model);
    if (lanes?.get(key)?.size === 0) lanes.delete(key);
    if (lanes?.size === 0) this.#lanes.delete(model);
  }
}

function laneKey({ home, request: { adapter } }: Ticket): Replica | string {
  return home ?? adapter ?? "";
}
