import type { ClassTable, ServiceClass } from "../classes.ts";
import type { Queued } from "../priorityQueue.ts";
import { FairShare, MAX_FLOWS } from "./fairShare.ts";
import type { Flow, Waiter } from "./flow.ts";
import { Guarantee } from "./guarantee.ts";

/** A class of weight 0 still has a turn among classes of its priority, rarely. */
const LEAST_WEIGHT = 0.001;

export interface ShareSettings {
  readonly classes: ClassTable;
  /** Weight of a tenant among those of its class. */
  readonly tenantWeight: (tenant: string) => number;
  readonly maxFlows?: number;
}

/** One class's part of a model. */
export class ClassShare<T extends Waiter> {
  readonly name: string;
  serviceClass: ServiceClass;
  readonly flows: FairShare<T>;
  readonly guarantee: Guarantee;
  waiting = 0;
  waitingTokens = 0;
  /** Tokens got over the class's weight: whose turn it is among classes of one priority. */
  servedUntil = 0;

  constructor(serviceClass: ServiceClass, settings: ShareSettings) {
    this.name = serviceClass.name;
    this.serviceClass = serviceClass;
    this.flows = new FairShare(settings.tenantWeight, settings.maxFlows ?? MAX_FLOWS);
    this.guarantee = new Guarantee(serviceClass.guaranteedShare);
  }
}

/** What a request is part of. */
export interface Standing<T extends Waiter> {
  readonly share: ClassShare<T>;
  readonly flow: Flow<T>;
}

/** The same of one that waits; it is kept with it. */
export interface Seat<T extends Waiter> extends Standing<T> {
  readonly entry: Queued<T>;
}

/**
 * Who has got how much of one model's replicas, and so who is next: a class that is due by its guarantee, else the
 * highest priority, classes of one priority by weight; within a class, tenants by weight.
 */
export class ModelShare<T extends Waiter> {
  readonly #classes = new Map<string, ClassShare<T>>();
  /** Of the classes of each priority, as of the flows of a class. */
  readonly #virtualTimes = new Map<number, number>();
  #settings: ShareSettings;
  #waiting = 0;

  constructor(settings: ShareSettings) {
    this.#settings = settings;
  }

  /** Takes over other classes and weights; what was served stays served. */
  configure(settings: ShareSettings): void {
    this.#settings = settings;
    for (const share of this.#classes.values()) {
      share.serviceClass = settings.classes.get(share.name);
      share.guarantee.share = share.serviceClass.guaranteedShare;
      share.flows.configure(settings.tenantWeight);
    }
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Of a class that a reload has dropped, the standard one's. */
  classOf(name: string): ClassShare<T> {
    const known = this.#classes.get(name);
    if (known !== undefined) return known;
    const serviceClass = this.#settings.classes.get(name);
    if (serviceClass.name !== name) return this.classOf(serviceClass.name);
    const share = new ClassShare<T>(serviceClass, this.#settings);
    this.#classes.set(name, share);
    return share;
  }

  /** Undefined: nobody of this class has waited or been served. */
  known(className: string): ClassShare<T> | undefined {
    return this.#classes.get(className) ?? this.#classes.get(this.#settings.classes.get(className).name);
  }

  classes(): Iterable<ClassShare<T>> {
    return this.#classes.values();
  }

  /** Somebody begins to wait. */
  arrives(waiter: T): Seat<T> {
    const { className, tenant } = waiter.request;
    const share = this.classOf(className);
    if (share.waiting === 0) share.servedUntil = this.#startOf(share);
    share.guarantee.asked(waiter.tokens);
    const flow = share.flows.flowOf(tenant);
    const entry = flow.newest.push(waiter, -waiter.sequence, 0);
    share.flows.arrives(flow, waiter);
    share.waiting++;
    share.waitingTokens += waiter.tokens;
    this.#waiting++;
    return { share, flow, entry };
  }

  /** Bound, refused or cancelled: once for each that arrived. */
  leaves({ share, flow, entry }: Seat<T>): void {
    flow.newest.remove(entry);
    share.flows.leaves(flow, entry.value);
    share.waiting--;
    share.waitingTokens -= entry.value.tokens;
    this.#waiting--;
    if (share.waiting === 0) share.guarantee.idle();
  }

  /** A request of so many tokens is bound, whether it waited or not. To be called before it `leaves`. */
  charge(share: ClassShare<T>, flow: Flow<T>, tokens: number): void {
    share.flows.charge(flow, tokens);
    this.#chargeClass(share, tokens);
    share.guarantee.got(tokens);
    for (const other of this.#classes.values())
      if (other !== share && other.waiting > 0) other.guarantee.othersGot(tokens);
  }

  /** Whether the next one of class `a` goes before the next one of class `b`. */
  classBefore(a: ClassShare<T>, b: ClassShare<T>): boolean {
    if (a.guarantee.due !== b.guarantee.due) return a.guarantee.due;
    const [p, q] = [a.serviceClass.priority, b.serviceClass.priority];
    if (p !== q) return p > q;
    // Of a class for which nobody waits, what it had long ago says nothing.
    const [own, other] = [a, b].map((share) => (share.waiting > 0 ? share.servedUntil : this.#startOf(share)));
    return own! < other!;
  }

  #chargeClass(share: ClassShare<T>, tokens: number): void {
    const { priority, weight } = share.serviceClass;
    const startsAt = this.#startOf(share);
    let leastServed = startsAt;
    for (const other of this.#classes.values())
      if (other.waiting > 0 && other.serviceClass.priority === priority)
        leastServed = Math.min(leastServed, other.servedUntil);
    this.#virtualTimes.set(priority, Math.max(this.#virtualTimes.get(priority) ?? 0, leastServed));
    share.servedUntil = startsAt + tokens / Math.max(LEAST_WEIGHT, weight);
  }

  #startOf({ servedUntil, serviceClass }: ClassShare<T>): number {
    return Math.max(servedUntil, this.#virtualTimes.get(serviceClass.priority) ?? 0);
  }
}
