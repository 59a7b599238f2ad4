import type { Fleet } from "#src/fleet/fleet.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { CompletionRate, predictedRatePerMs } from "./serviceRate.ts";

/** What a request that was not read yet is taken for. */
const TYPICAL_PROMPT_TOKENS = 1_000;
const TYPICAL_OUTPUT_TOKENS = 256;
/** Rates are kept for this many models; models that are gone make place for new ones. */
const MAX_MODELS = 1_000;

/** Predicts when the queue will have been served: its length over the rate at which requests complete. */
export class RetryAfter {
  readonly #fleet: Fleet;
  readonly #byModel = new Map<string, CompletionRate>();
  readonly #overall = new CompletionRate();

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  completed(model: string, nowMs: number): void {
    this.#overall.completed(nowMs);
    let rate = this.#byModel.get(model);
    if (rate === undefined) {
      if (this.#byModel.size >= MAX_MODELS) this.#byModel.delete(this.#byModel.keys().next().value ?? "");
      this.#byModel.set(model, (rate = new CompletionRate()));
    }
    rate.completed(nowMs);
  }

  /** For a request behind `ahead` others of its model. */
  forRequest(request: RouteRequest, ahead: number, nowMs: number): number {
    const seen = this.#byModel.get(request.model)?.perMs(nowMs) ?? null;
    if (seen !== null) return (ahead + 1) / seen;
    const outputTokens = request.generates
      ? this.#fleet.outputLengths.expect(request.model, request.tenant, request.maxOutputTokens)
      : 0;
    const pool = this.#fleet.pool(request.model);
    return (ahead + 1) / predictedRatePerMs(pool, request.identity.promptTokens, outputTokens);
  }

  /** For a request of which nothing is known yet, behind `ahead` others of any model. */
  forAny(ahead: number, nowMs: number): number {
    const seen = this.#overall.perMs(nowMs);
    if (seen !== null) return (ahead + 1) / seen;
    return (ahead + 1) / predictedRatePerMs(this.#fleet.replicas(), TYPICAL_PROMPT_TOKENS, TYPICAL_OUTPUT_TOKENS);
  }
}
