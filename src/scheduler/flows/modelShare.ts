import type { ClassTable, ServiceClass } from "../classes.ts";
import { FairShare, MAX_FLOWS } from "./fairShare.ts";
import type { Flow } from "./flow.ts";
import { Guarantee } from "./guarantee.ts";

/** A class of weight 0 still has a turn among classes of its priority, rarely. */
const LEAST_WEIGHT = 0.001;

export interface ShareSettings {
  readonly classes: ClassTable;
  /** Weight of a tenant among those of its class. */
  readonly tenantWeight: (tenant: string) => number;
  readonly maxFlows?: number;
}

/** The flows of one class for one model, and what the class has got. */
export class ClassShare {
  readonly flows: FairShare;
  readonly guarantee: Guarantee;
  /** The class among all of its model. */
  readonly own: Flow;
  serviceClass: ServiceClass;

  constructor(serviceClass: ServiceClass, own: Flow, settings: ShareSettings) {
    this.serviceClass = serviceClass;
    this.own = own;
    this.flows = new FairShare(settings.tenantWeight, settings.maxFlows ?? MAX_FLOWS);
    this.guarantee = new Guarantee(serviceClass.guaranteedShare);
  }

  get waiting(): number {
    return this.own.waiting;
  }
}

/**
 * Who has got how much of one model's replicas, and so who is next: a class that is due by its guarantee, else the
 * highest priority, classes of one priority by weight; within a class, tenants by weight.
 */
export class ModelShare {
  readonly #classes = new Map<string, ClassShare>();
  readonly #amongClasses: FairShare;
  #settings: ShareSettings;

  constructor(settings: ShareSettings) {
    this.#settings = settings;
    this.#amongClasses = new FairShare((name) => weightOf(settings.classes.get(name)));
  }

  /** Takes over other classes and weights; what was served stays served. */
  configure(settings: ShareSettings): void {
    this.#settings = settings;
    this.#amongClasses.configure((name) => weightOf(settings.classes.get(name)));
    for (const share of this.#classes.values()) {
      share.serviceClass = settings.classes.get(share.serviceClass.name);
      share.guarantee.share = share.serviceClass.guaranteedShare;
      share.flows.configure(settings.tenantWeight);
    }
  }

  /** Of a class that a reload has dropped, the standard one's. */
  classOf(name: string): ClassShare {
    const known = this.#classes.get(name);
    if (known !== undefined) return known;
    const serviceClass = this.#settings.classes.get(name);
    if (serviceClass.name !== name) return this.classOf(serviceClass.name);
    const share = new ClassShare(serviceClass, this.#amongClasses.flowOf(name), this.#settings);
    this.#classes.set(name, share);
    return share;
  }

  classes(): Iterable<ClassShare> {
    return this.#classes.values();
  }

  arrives(share: ClassShare, flow: Flow): void {
    share.flows.arrives(flow);
    this.#amongClasses.arrives(share.own);
  }

  leaves(share: ClassShare, flow: Flow): void {
    share.flows.leaves(flow);
    this.#amongClasses.leaves(share.own);
    if (share.waiting === 0) share.guarantee.idle();
  }

  /** A request of so many tokens is bound, whether it waited or not. To be called before it `leaves`. */
  charge(share: ClassShare, flow: Flow, tokens: number): void {
    share.flows.charge(flow, tokens);
    this.#amongClasses.charge(share.own, tokens);
    share.guarantee.got(tokens);
    for (const other of this.#classes.values())
      if (other !== share && other.waiting > 0) other.guarantee.othersGot(tokens);
  }

  /** Whether the next one of class `a` goes before the next one of class `b`. */
  classBefore(a: ClassShare, b: ClassShare): boolean {
    if (a.guarantee.due !== b.guarantee.due) return a.guarantee.due;
    const [p, q] = [a.serviceClass.priority, b.serviceClass.priority];
    return p === q ? a.own.before(b.own) : p > q;
  }
}

function weightOf({ weight }: ServiceClass): number {
  return Math.max(LEAST_WEIGHT, weight);
}
