import { PriorityQueue } from "../priorityQueue.ts";
import type { Queued } from "../priorityQueue.ts";
import type { Flow, Waiter } from "./flow.ts";
import type { ClassShare, ModelShare, Standing } from "./modelShare.ts";

/** So many of a flow are looked at; of a longer one they stand for all. */
const SAMPLE = 64;

/** One flow's part of a line. */
export interface LineFlow<T extends Waiter> {
  readonly flow: Flow<T>;
  readonly ofClass: LineClass<T>;
  readonly waiting: PriorityQueue<Place<T>>;
  /** Of those that wait in it, together. */
  workMs: number;
  /** Null: all its waiters have left, or are passed over. */
  turn: Queued<LineFlow<T>> | null;
}

interface LineClass<T extends Waiter> {
  readonly share: ClassShare<T>;
  readonly flows: Map<Flow<T>, LineFlow<T>>;
  readonly turns: PriorityQueue<LineFlow<T>>;
  workMs: number;
}

/** A place in a line; kept by whoever may have to give it up. */
export interface Place<T extends Waiter> {
  readonly value: T;
  /** Within its flow, least first. */
  readonly rank: number;
  /** Predicted time that it keeps what it waits for busy. */
  readonly workMs: number;
  readonly inFlow: LineFlow<T>;
  /** Null: it has left, or is passed over. Only the line writes it. */
  entry: Queued<Place<T>> | null;
}

/**
 * Those that wait for the same, in the order of service: class, then tenant, then rank within the tenant's own. Lines of
 * one model have their shares in common, so that what a tenant gets by one counts in all.
 */
export class FairLine<T extends Waiter> {
  readonly #share: ModelShare<T>;
  readonly #classes: LineClass<T>[] = [];
  #passedOver: Place<T>[] = [];
  #size = 0;

  constructor(share: ModelShare<T>) {
    this.#share = share;
  }

  get size(): number {
    return this.#size;
  }

  push(value: T, rank: number, { share, flow }: Standing<T>, workMs = 0): Place<T> {
    const place: Place<T> = { value, rank, workMs, inFlow: flowIn(this.#classFor(share), flow), entry: null };
    this.#enter(place);
    this.#size++;
    return place;
  }

  /** Harmless for one that has left. */
  remove(place: Place<T>): void {
    if (place.entry === null) {
      const at = this.#passedOver.indexOf(place);
      if (at < 0) return;
      this.#passedOver.splice(at, 1);
    } else this.#withdraw(place, place.entry);
    this.#size--;
    const { inFlow } = place;
    if (inFlow.waiting.size === 0 && !this.#passedOver.some((other) => other.inFlow === inFlow))
      inFlow.ofClass.flows.delete(inFlow.flow);
  }

  /** Who is next; null: nobody, or all that are left are passed over. */
  get first(): Place<T> | null {
    let best: LineFlow<T> | null = null;
    for (const ofClass of this.#classes) {
      const next = nextFlow(ofClass);
      if (next !== null && (best === null || this.#share.classBefore(ofClass.share, best.ofClass.share))) best = next;
    }
    return best?.waiting.first?.value ?? null;
  }

  /** Whether one of this seat and rank would be served before all that wait here. */
  wouldLead({ share, flow }: Standing<T>, rank: number): boolean {
    const { first } = this;
    if (first === null) return true;
    const { inFlow } = first;
    if (inFlow.ofClass.share !== share) return this.#share.classBefore(share, inFlow.ofClass.share);
    return inFlow.flow === flow ? rank < first.rank : share.flows.goesBefore(flow, inFlow.flow);
  }

  /**
   * Predicted work of those that go before one of this seat and rank, `self` left out: of classes that go first all; of
   * its own tenant those of a lower rank; of the other tenants of its class what they get for their weight meanwhile.
   */
  workMsBefore({ share, flow }: Standing<T>, rank: number, workMs: number, self: T): number {
    let before = 0;
    for (const ofClass of this.#classes) {
      if (ofClass.share !== share) {
        if (this.#share.classBefore(ofClass.share, share)) before += ofClass.workMs;
        continue;
      }
      const own = ofClass.flows.get(flow);
      const ownMs = own === undefined ? 0 : workMsUpTo(own.waiting, rank, self);
      const othersMs = ofClass.workMs - (own?.workMs ?? 0);
      const othersWeight = share.flows.waitingWeight - (flow.waiting > 0 ? flow.weight : 0);
      before += ownMs + Math.min(othersMs, ((ownMs + workMs) * othersWeight) / flow.weight);
    }
    return before;
  }

  /** One that waits so far back in the line, 0 to 1, among those whose turn it is; null: nobody does. */
  about(part: number): Place<T> | null {
    const waiting = this.first?.inFlow.waiting;
    return waiting?.at(Math.ceil(part * (waiting.size - 1)))?.value ?? null;
  }

  /** There is no room for this one now: the next ones may be asked. */
  passOver(place: Place<T>): void {
    if (place.entry === null) return;
    this.#withdraw(place, place.entry);
    this.#passedOver.push(place);
  }

  /** Those that were passed over have their places again. */
  restore(): void {
    const places = this.#passedOver;
    if (places.length === 0) return;
    this.#passedOver = [];
    for (const place of places) this.#enter(place);
  }

  /** In no particular order. */
  *values(): Generator<T> {
    for (const { flows } of this.#classes)
      for (const { waiting } of flows.values()) for (const { value } of waiting.values()) yield value;
    for (const { value } of this.#passedOver) yield value;
  }

  #enter(place: Place<T>): void {
    const { inFlow, rank, value } = place;
    place.entry = inFlow.waiting.push(place, rank, value.sequence);
    const { flow, ofClass } = inFlow;
    inFlow.workMs += place.workMs;
    ofClass.workMs += place.workMs;
    inFlow.turn ??= ofClass.turns.push(inFlow, flow.servedUntil, flow.number);
  }

  #withdraw(place: Place<T>, entry: Queued<Place<T>>): void {
    const { inFlow } = place;
    const { ofClass } = inFlow;
    inFlow.waiting.remove(entry);
    place.entry = null;
    inFlow.workMs -= place.workMs;
    ofClass.workMs -= place.workMs;
    if (inFlow.waiting.size > 0 || inFlow.turn === null) return;
    ofClass.turns.remove(inFlow.turn);
    inFlow.turn = null;
    // Sums of rounded numbers are set right where nothing is left to sum up.
    inFlow.workMs = 0;
    if (ofClass.turns.size === 0) ofClass.workMs = 0;
  }

  #classFor(share: ClassShare<T>): LineClass<T> {
    let found = this.#classes.find((each) => each.share === share);
    if (found === undefined)
      this.#classes.push((found = { share, flows: new Map(), turns: new PriorityQueue(), workMs: 0 }));
    return found;
  }
}

/** Predicted work of those of a lower rank. */
function workMsUpTo<T extends Waiter>(waiting: PriorityQueue<Place<T>>, rank: number, self: T): number {
  const looked = Math.min(waiting.size, SAMPLE);
  let sum = 0;
  for (let nth = 0; nth < looked; nth++) {
    const { value: place } = waiting.at(Math.floor((nth * waiting.size) / looked))!;
    if (place.rank < rank && place.value !== self) sum += place.workMs;
  }
  return (sum * waiting.size) / Math.max(1, looked);
}

/** Which of the heads of two lines of one model goes first. */
export function before<T extends Waiter>(share: ModelShare<T>, a: Place<T>, b: Place<T>): boolean {
  const [one, other] = [a.inFlow, b.inFlow];
  if (one.ofClass.share !== other.ofClass.share) return share.classBefore(one.ofClass.share, other.ofClass.share);
  if (one.flow !== other.flow) return one.flow.before(other.flow);
  return a.rank === b.rank ? a.value.sequence < b.value.sequence : a.rank < b.rank;
}

function flowIn<T extends Waiter>(ofClass: LineClass<T>, flow: Flow<T>): LineFlow<T> {
  let found = ofClass.flows.get(flow);
  if (found === undefined) {
    found = { flow, ofClass, waiting: new PriorityQueue(), turn: null, workMs: 0 };
    ofClass.flows.set(flow, found);
  }
  return found;
}

/** Flows advance whichever line they are served from, so the order kept here may be old; it is brought up to date here. */
function nextFlow<T extends Waiter>({ turns }: LineClass<T>): LineFlow<T> | null {
  for (;;) {
    const first = turns.first;
    if (first === null) return null;
    const inFlow = first.value;
    const { servedUntil, number } = inFlow.flow;
    if (first.key >= servedUntil) return inFlow;
    turns.remove(first);
    inFlow.turn = turns.push(inFlow, servedUntil, number);
  }
}
