import type { Replica } from "#src/fleet/replica.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { FairLine } from "./flows/fairLine.ts";
import type { ModelShare, ShareSettings, Standing } from "./flows/modelShare.ts";
import { Shares, type Newcomer } from "./flows/shares.ts";
import { PriorityQueue } from "./priorityQueue.ts";
import type { QueueLimits } from "./queueLimits.ts";
import type { Ticket } from "./ticket.ts";

/** Those that wait for the same: one replica, or any that serves their model and adapter. */
export type Line = FairLine<Ticket>;

/** Everybody that waits, in order, with bounds. Decides nothing about who goes where. */
export class WaitingRoom {
  readonly #shares: Shares<Ticket>;
  readonly #lines = new Map<string, Map<Replica | string, Line>>();
  readonly #expiry = new PriorityQueue<Ticket>();
  #bytes = 0;

  constructor(settings: ShareSettings) {
    this.#shares = new Shares(settings);
  }

  /** Takes over other classes and weights; those that wait keep their places. */
  configure(settings: ShareSettings): void {
    this.#shares.configure(settings);
  }

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

  /** Who gives up a place for one more; null: nobody does. */
  givesWay(newcomer: Newcomer): Ticket | null {
    return this.#shares.givesWay(newcomer);
  }

  add(ticket: Ticket, rank: number, expiresMs: number): void {
    ticket.seat = this.shareOf(ticket.request.model).arrives(ticket);
    ticket.place = this.lineOf(ticket).push(ticket, rank, ticket.seat, ticket.workMs);
    ticket.inExpiry = this.#expiry.push(ticket, expiresMs, ticket.sequence);
    this.#bytes += ticket.request.bodyBytes;
  }

  /** Harmless for one that does not wait. */
  remove(ticket: Ticket): void {
    const { seat, place, inExpiry } = ticket;
    if (seat === null || place === null || inExpiry === null) return;
    const { model, bodyBytes } = ticket.request;
    this.lineOf(ticket).remove(place);
    this.shareOf(model).leaves(seat);
    this.#expiry.remove(inExpiry);
    ticket.seat = null;
    ticket.place = null;
    ticket.inExpiry = null;
    this.#bytes -= bodyBytes;
    this.#dropEmpty(model, lineKey(ticket));
  }

  /** It waits for another replica now, or has more or less to do there. */
  move(ticket: Ticket, home: Replica | null, workMs: number, rank: number): void {
    if (ticket.seat === null || ticket.place === null) return;
    this.lineOf(ticket).remove(ticket.place);
    this.#dropEmpty(ticket.request.model, lineKey(ticket));
    ticket.home = home;
    ticket.workMs = workMs;
    ticket.place = this.lineOf(ticket).push(ticket, rank, ticket.seat, workMs);
  }

  /** One that is past its time, least first; null if nobody is. */
  expired(nowMs: number): Ticket | null {
    const first = this.#expiry.first;
    return first !== null && first.key <= nowMs ? first.value : null;
  }

  /** How many wait for a model. */
  ofModel(model: string): number {
    return this.#shares.known(model)?.waiting ?? 0;
  }

  /** Models that somebody waits for. */
  models(): readonly string[] {
    return [...this.#lines.keys()];
  }

  /** Who has got how much of a model. */
  shareOf(model: string): ModelShare<Ticket> {
    return this.#shares.of(model);
  }

  /** Null: nobody has got anything of it yet, or it was long ago. */
  knownShareOf(model: string): ModelShare<Ticket> | null {
    return this.#shares.known(model);
  }

  /** The class and the tenant of a request, whether it waits or not. */
  standingOf({ model, className, tenant }: RouteRequest): Standing<Ticket> {
    const share = this.shareOf(model).classOf(className);
    return { share, flow: share.flows.flowOf(tenant) };
  }

  lines(model: string): readonly Line[] {
    return [...(this.#lines.get(model)?.values() ?? [])];
  }

  lineOf(ticket: Ticket): Line {
    const { model } = ticket.request;
    let lines = this.#lines.get(model);
    if (lines === undefined) this.#lines.set(model, (lines = new Map()));
    const key = lineKey(ticket);
    let line = lines.get(key);
    if (line === undefined) lines.set(key, (line = new FairLine(this.shareOf(model))));
    return line;
  }

  /** Whether somebody waits for this one replica. */
  awaits(replica: Replica): boolean {
    for (const lines of this.#lines.values()) if (lines.has(replica)) return true;
    return false;
  }

  /** Null: nobody waits for this replica. */
  lineFor(model: string, replica: Replica): Line | null {
    return this.#lines.get(model)?.get(replica) ?? null;
  }

  /** Lines for single replicas, with whom they wait for. */
  *linesByReplica(model: string): Generator<readonly [Replica, Line]> {
    for (const [key, line] of this.#lines.get(model) ?? []) if (typeof key !== "string") yield [key, line];
  }

  tickets(): readonly Ticket[] {
    return this.#expiry.values();
  }

  #dropEmpty(model: string, key: Replica | string): void {
    const lines = this.#lines.get(model);
    if (lines?.get(key)?.size === 0) lines.delete(key);
    if (lines?.size === 0) this.#lines.delete(model);
  }
}

function lineKey({ home, request: { adapter } }: Ticket): Replica | string {
  return home ?? adapter ?? "";
}
