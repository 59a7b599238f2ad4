import { PriorityQueue } from "../priorityQueue.ts";
import { Flow } from "./flow.ts";
import type { Waiter } from "./flow.ts";

/** Flows of one class and model that are told apart at a time. */
export const MAX_FLOWS = 4_096;
/** Name of the flow that tenants share for whom there is no place; no tenant can have it. */
export const OTHERS = "";
/** A flow whose requests fit nowhere for a while keeps a claim to so many tokens, and no more. */
export const MAX_CLAIM_TOKENS = 32_768;

/**
 * Whose turn it is, by start-time fair queueing (Goyal, Vin and Cheng, 1996): a flow's virtual time advances by the
 * tokens it gets over its weight, and the flow that is least advanced goes next. So two flows that both wait get tokens
 * in the ratio of their weights, give or take one request of each, whatever rates they arrive at.
 *
 * A flow that comes back is put where the others are: share that it left unused is not saved up, and share that it took
 * while nobody else wanted it is not held against it.
 */
export class FairShare<T extends Waiter> {
  readonly #flows = new Map<string, Flow<T>>();
  readonly #turns = new PriorityQueue<Flow<T>>();
  readonly #loads = new PriorityQueue<Flow<T>>();
  readonly #maxFlows: number;
  #weightOf: (tenant: string) => number;
  #virtualTime = 0;
  #made = 0;
  /** Virtual time of the last search for flows to forget: at the same time another one would find no more. */
  #searchedAt = -1;
  #waitingWeight = 0;

  constructor(weightOf: (tenant: string) => number, maxFlows = MAX_FLOWS) {
    this.#weightOf = weightOf;
    this.#maxFlows = maxFlows;
  }

  /** Flows that are told apart, the shared one included. */
  get size(): number {
    return this.#flows.size;
  }

  flows(): Iterable<Flow<T>> {
    return this.#flows.values();
  }

  /** Flows of which somebody waits, in no particular order. */
  waitingFlows(): Flow<T>[] {
    return this.#turns.values();
  }

  /** Weights of all flows of which somebody waits. */
  get waitingWeight(): number {
    return this.#waitingWeight;
  }

  /** Of which the most wait for its weight. */
  get mostLoaded(): Flow<T> | null {
    return this.#loads.first?.value ?? null;
  }

  /** Takes over other weights. */
  configure(weightOf: (tenant: string) => number): void {
    this.#weightOf = weightOf;
    this.#waitingWeight = 0;
    for (const flow of this.#flows.values()) {
      flow.weight = weightOf(flow.tenant);
      if (flow.waiting > 0) this.#waitingWeight += flow.weight;
    }
  }

  weightOf(tenant: string): number {
    return this.#weightOf(tenant);
  }

  /** Null: the tenant has none of its own. */
  known(tenant: string): Flow<T> | null {
    return this.#flows.get(tenant) ?? null;
  }

  /** The tenant's flow; beyond the bound, the one that such tenants share. */
  flowOf(tenant: string): Flow<T> {
    const known = this.#flows.get(tenant);
    if (known !== undefined) return known;
    if (this.#flows.size >= this.#maxFlows) this.#forgetIdle();
    // The last place is for those that have none.
    const name = this.#flows.size >= this.#maxFlows - 1 ? OTHERS : tenant;
    let flow = this.#flows.get(name);
    if (flow === undefined) {
      flow = new Flow(name, this.#weightOf(name), this.#virtualTime, this.#made++);
      this.#flows.set(name, flow);
    }
    return flow;
  }

  /** Whether a flow that begins to wait now, or waits already, goes before another one that waits. */
  goesBefore(flow: Flow<T>, other: Flow<T>): boolean {
    const startsAt = flow.turn === null ? Math.max(flow.servedUntil, this.#virtualTime) : flow.servedUntil;
    return startsAt === other.servedUntil ? flow.number < other.number : startsAt < other.servedUntil;
  }

  /** One more waits: `came` has just been put among the newest. */
  arrives(flow: Flow<T>, came: T): void {
    flow.waitingTokens += came.tokens;
    flow.waitingBytes += came.request.bodyBytes;
    this.#reload(flow);
    if (flow.turn !== null) return;
    this.#waitingWeight += flow.weight;
    flow.servedUntil = Math.max(flow.servedUntil, this.#virtualTime);
    flow.turn = this.#turns.push(flow, flow.servedUntil, flow.number);
  }

  /** Bound, refused or cancelled: `gone` has just been taken from the newest. */
  leaves(flow: Flow<T>, gone: T): void {
    flow.waitingTokens -= gone.tokens;
    flow.waitingBytes -= gone.request.bodyBytes;
    this.#reload(flow);
    if (flow.waiting > 0 || flow.turn === null) return;
    this.#waitingWeight = this.#turns.size === 1 ? 0 : this.#waitingWeight - flow.weight;
    this.#turns.remove(flow.turn);
    flow.turn = null;
  }

  /** One of the flow's requests is bound, whether it waited or not. To be called before it `leaves`. */
  charge(flow: Flow<T>, tokens: number): void {
    const startsAt = Math.max(flow.servedUntil, this.#virtualTime);
    const leastServed = Math.min(startsAt, this.#turns.first?.key ?? startsAt);
    this.#virtualTime = Math.max(this.#virtualTime, leastServed, startsAt - MAX_CLAIM_TOKENS);
    const used = Math.max(0, tokens - flow.refund);
    flow.refund = Math.max(0, flow.refund - tokens);
    this.#advance(flow, startsAt + used / flow.weight);
  }

  /** What was charged turns out to be so many tokens more, or less. */
  correct(flow: Flow<T>, tokens: number): void {
    if (tokens < 0) flow.refund = Math.min(MAX_CLAIM_TOKENS, flow.refund - tokens);
    else this.#advance(flow, flow.servedUntil + tokens / flow.weight);
  }

  #advance(flow: Flow<T>, servedUntil: number): void {
    flow.servedUntil = servedUntil;
    if (flow.turn === null) return;
    this.#turns.remove(flow.turn);
    flow.turn = this.#turns.push(flow, servedUntil, flow.number);
  }

  #reload(flow: Flow<T>): void {
    if (flow.load !== null) this.#loads.remove(flow.load);
    flow.load = flow.waiting === 0 ? null : this.#loads.push(flow, -flow.loadPerWeight, flow.number);
  }

  /** Of those that wait for nothing and are not ahead of the others, a newcomer is no different. */
  #forgetIdle(): void {
    if (this.#searchedAt === this.#virtualTime) return;
    this.#searchedAt = this.#virtualTime;
    for (const [tenant, flow] of this.#flows)
      if (flow.waiting === 0 && flow.servedUntil <= this.#virtualTime) this.#flows.delete(tenant);
  }
}
