import type { Flow, Waiter } from "./flow.ts";
import { loadPerWeight } from "./flow.ts";
import { ModelShare } from "./modelShare.ts";
import type { ClassShare, ShareSettings } from "./modelShare.ts";

/** Models of which it is known who has got how much; those for which nobody waits make place for new ones. */
export const MAX_MODELS = 1_000;

/** Somebody for whom there is no place. */
export interface Newcomer {
  readonly className: string;
  readonly tenant: string;
  readonly bodyBytes: number;
}

/** The shares of all models, and what waits for them together. */
export class Shares<T extends Waiter> {
  readonly #byModel = new Map<string, ModelShare<T>>();
  #settings: ShareSettings;

  constructor(settings: ShareSettings) {
    this.#settings = settings;
  }

  configure(settings: ShareSettings): void {
    this.#settings = settings;
    for (const share of this.#byModel.values()) share.configure(settings);
  }

  /** To be asked for models of the fleet only. */
  of(model: string): ModelShare<T> {
    let share = this.#byModel.get(model);
    if (share !== undefined) return share;
    if (this.#byModel.size >= MAX_MODELS) this.#forgetIdle();
    share = new ModelShare(this.#settings);
    this.#byModel.set(model, share);
    return share;
  }

  /** Null: nobody waits for it, and whoever was served is forgotten. */
  known(model: string): ModelShare<T> | null {
    return this.#byModel.get(model) ?? null;
  }

  /** Models for which somebody waits or has been served, with their shares. */
  all(): Iterable<readonly [model: string, share: ModelShare<T>]> {
    return this.#byModel;
  }

  /**
   * Who gives up a place for a newcomer when as many wait as may: the last one of the tenant that has most waiting, in
   * the lowest class. Null: nobody does; the newcomer is refused.
   *
   * So a lower class is shed before a higher one, and within a class a tenant gives way only to one that will not have
   * more waiting than it has left. Whoever has waited longest stays.
   */
  givesWay(newcomer: Newcomer): T | null {
    const lowest = this.#lowest();
    if (lowest === null) return null;
    const most: Flow<T> | null = lowest.flows.mostLoaded;
    const own = this.#settings.classes.get(newcomer.className).priority;
    const { priority } = lowest.serviceClass;
    if (most === null || priority > own) return null;
    const last = most.newest.first?.value ?? null;
    if (last === null || priority < own) return last;
    const left = loadPerWeight(most.waiting - 1, most.waitingBytes - last.request.bodyBytes, most.weight);
    return left >= this.#loadWith(newcomer) ? last : null;
  }

  #lowest(): ClassShare<T> | null {
    let lowest: ClassShare<T> | null = null;
    for (const model of this.#byModel.values())
      for (const share of model.classes())
        if (share.waiting > 0 && (lowest === null || isLower(share, lowest))) lowest = share;
    return lowest;
  }

  /** What the newcomer's tenant would have waiting, of the model of which it has most. */
  #loadWith({ className, tenant, bodyBytes }: Newcomer): number {
    const weight = this.#settings.tenantWeight(tenant);
    let least = loadPerWeight(1, bodyBytes, weight);
    for (const model of this.#byModel.values()) {
      const flow = model.known(className)?.flows.known(tenant) ?? null;
      if (flow !== null)
        least = Math.max(least, loadPerWeight(flow.waiting + 1, flow.waitingBytes + bodyBytes, weight));
    }
    return least;
  }

  #forgetIdle(): void {
    for (const [model, share] of this.#byModel) if (share.waiting === 0) this.#byModel.delete(model);
  }
}

/** Of two of one priority, that of which one tenant has more waiting. */
function isLower<T extends Waiter>(a: ClassShare<T>, b: ClassShare<T>): boolean {
  const [p, q] = [a.serviceClass.priority, b.serviceClass.priority];
  if (p !== q) return p < q;
  return (a.flows.mostLoaded?.loadPerWeight ?? 0) > (b.flows.mostLoaded?.loadPerWeight ?? 0);
}
