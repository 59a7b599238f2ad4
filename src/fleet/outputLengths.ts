import { QuantileEstimate } from "./quantileEstimate.ts";

/** Before anything was seen; chats answer in a few hundred tokens. */
const ASSUMED_TOKENS = 256;
/** A tenant's own lengths count from so many answers on; below it, the model's. */
const OWN_AFTER = 20;
/** Weight of one answer in a mean once there are many: the last hundred count. */
const MEAN_WEIGHT = 0.01;

interface Lengths {
  answers: number;
  mean: number;
  readonly p90: QuantileEstimate;
}

function unseen(): Lengths {
  return { answers: 0, mean: ASSUMED_TOKENS, p90: new QuantileEstimate(0.9, ASSUMED_TOKENS) };
}

function learn(lengths: Lengths, outputTokens: number): void {
  lengths.answers++;
  lengths.mean += Math.max(MEAN_WEIGHT, 1 / lengths.answers) * (outputTokens - lengths.mean);
  lengths.p90.observe(outputTokens);
}

/** Output lengths as seen, per model and tenant, falling back to the model, then to everything. Bounded: LRU. */
export class OutputLengths {
  readonly #maxKeys: number;
  readonly #byKey = new Map<string, Lengths>();
  readonly #all = unseen();

  constructor(maxKeys = 10_000) {
    this.#maxKeys = maxKeys;
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** Expected output tokens of one sequence, at most `maxOutputTokens` (null: no limit), at least 1. */
  expect(model: string, tenant: string, maxOutputTokens: number | null): number {
    const mean = this.#known(model, tenant).mean;
    return Math.max(1, Math.min(maxOutputTokens ?? Number.POSITIVE_INFINITY, Math.round(mean)));
  }

  /** Nine of ten answers are no longer than this; capped likewise. */
  p90(model: string, tenant: string, maxOutputTokens: number | null): number {
    const p90 = this.#known(model, tenant).p90.value;
    return Math.max(1, Math.min(maxOutputTokens ?? Number.POSITIVE_INFINITY, Math.round(p90)));
  }

  /** One sequence ended by itself or by its limit after `outputTokens`. */
  observe(model: string, tenant: string, outputTokens: number): void {
    if (!(outputTokens >= 0) || !Number.isFinite(outputTokens)) return;
    learn(this.#all, outputTokens);
    learn(this.#entry(model), outputTokens);
    learn(this.#entry(`${model}\n${tenant}`), outputTokens);
  }

  #known(model: string, tenant: string): Lengths {
    const own = this.#byKey.get(`${model}\n${tenant}`);
    if (own !== undefined && own.answers >= OWN_AFTER) return own;
    const ofModel = this.#byKey.get(model);
    return ofModel === undefined ? this.#all : ofModel;
  }

  #entry(key: string): Lengths {
    const known = this.#byKey.get(key);
    // Deleted and set again, so that the map's order is the order of use.
    if (known !== undefined) this.#byKey.delete(key);
    else if (this.#byKey.size >= this.#maxKeys) this.#byKey.delete(this.#byKey.keys().next().value ?? "");
    const entry = known ?? unseen();
    this.#byKey.set(key, entry);
    return entry;
  }
}
