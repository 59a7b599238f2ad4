import type { RouteRequest } from "#src/request/routeRequest.ts";
import { BusyRate } from "./flows/busyRate.ts";
import { tokensBefore } from "./flows/serviceOrder.ts";
import type { Waiter } from "./flows/flow.ts";
import type { ModelShare } from "./flows/modelShare.ts";

/** Models whose rate is kept; those for which nobody waits make place for new ones. */
const MAX_MODELS = 1_000;

/** Predicts waits in the router: the tokens that go before, over the rate at which tokens were bound while somebody waited. */
export class WaitForecast {
  readonly #byModel = new Map<string, BusyRate>();

  /** Models whose rate is kept. */
  get models(): number {
    return this.#byModel.size;
  }

  /** Somebody begins to wait for the model; before, nobody did. */
  begins(model: string, nowMs: number): void {
    this.#of(model).begins(nowMs);
  }

  /** The last one that waited for the model has left. */
  ends(model: string, nowMs: number): void {
    this.#byModel.get(model)?.ends(nowMs);
  }

  bound(model: string, tokens: number, nowMs: number): void {
    this.#byModel.get(model)?.bound(tokens, nowMs);
  }

  /** Until one more such request would be bound; null: too little was seen to tell. */
  waitMs<T extends Waiter>(
    share: ModelShare<T>,
    { model, className, tenant }: Pick<RouteRequest, "model" | "className" | "tenant">,
    nowMs: number,
  ): number | null {
    if (share.waiting === 0) return 0;
    const perMs = this.#byModel.get(model)?.perMs(nowMs) ?? null;
    return perMs === null ? null : tokensBefore(share, className, tenant) / perMs;
  }

  #of(model: string): BusyRate {
    let rate = this.#byModel.get(model);
    if (rate === undefined) {
      if (this.#byModel.size >= MAX_MODELS) this.#forgetIdle();
      this.#byModel.set(model, (rate = new BusyRate()));
    }
    return rate;
  }

  #forgetIdle(): void {
    for (const [model, rate] of this.#byModel) if (!rate.busy) this.#byModel.delete(model);
  }
}
