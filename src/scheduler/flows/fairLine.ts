import { PriorityQueue } from "../priorityQueue.ts";
import type { Queued } from "../priorityQueue.ts";
import type { Flow, Waiter } from "./flow.ts";
import type { ClassShare, ModelShare, Seat } from "./modelShare.ts";

/** One flow's part of a line. */
export interface LineFlow<T extends Waiter> {
  readonly flow: Flow<T>;
  readonly ofClass: LineClass<T>;
  readonly waiting: PriorityQueue<Place<T>>;
  /** Null: all its waiters have left, or are passed over. */
  turn: Queued<LineFlow<T>> | null;
}

interface LineClass<T extends Waiter> {
  readonly share: ClassShare<T>;
  readonly flows: Map<Flow<T>, LineFlow<T>>;
  readonly turns: PriorityQueue<LineFlow<T>>;
}

/** A place in a line; kept by whoever may have to give it up. */
export interface Place<T extends Waiter> {
  readonly value: T;
  /** Within its flow, least first. */
  readonly rank: number;
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

  push(value: T, rank: number, { share, flow }: Seat<T>): Place<T> {
    const place: Place<T> = { value, rank, inFlow: flowIn(this.#classFor(share), flow), entry: null };
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
    inFlow.turn ??= ofClass.turns.push(inFlow, flow.servedUntil, flow.number);
  }

  #withdraw(place: Place<T>, entry: Queued<Place<T>>): void {
    const { inFlow } = place;
    inFlow.waiting.remove(entry);
    place.entry = null;
    if (inFlow.waiting.size > 0 || inFlow.turn === null) return;
    inFlow.ofClass.turns.remove(inFlow.turn);
    inFlow.turn = null;
  }

  #classFor(share: ClassShare<T>): LineClass<T> {
    let found = this.#classes.find((each) => each.share === share);
    if (found === undefined) this.#classes.push((found = { share, flows: new Map(), turns: new PriorityQueue() }));
    return found;
  }
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
    found = { flow, ofClass, waiting: new PriorityQueue(), turn: null };
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
