import { CONDITION_GUIDE } from "./conditionGuide.ts";
import type { ConditionKey } from "./conditionGuide.ts";

export interface Condition {
  readonly key: ConditionKey;
  /** Null: of the whole router. */
  readonly replicaId: string | null;
  readonly sinceMs: number;
  /** What was seen. */
  readonly message: string;
  /** What to do about it. */
  readonly mend: string;
}

/** The visible degradations of the fleet. Bounded; the newest ones past the bound are counted, not kept. */
export class Conditions {
  readonly #maxConditions: number;
  readonly #byKey = new Map<string, Condition>();
  #unkept = 0;

  constructor(maxConditions = 10_000) {
    this.#maxConditions = maxConditions;
  }

  /** True if this is news; a repeated one keeps its `sinceMs` and takes the new message. */
  raise(key: ConditionKey, replicaId: string | null, message: string, nowMs: number): boolean {
    const id = `${key} ${replicaId ?? ""}`;
    const known = this.#byKey.get(id);
    if (known === undefined && this.#byKey.size >= this.#maxConditions) {
      this.#unkept++;
      return false;
    }
    if (known?.message !== message) {
      const { mend } = CONDITION_GUIDE[key];
      this.#byKey.set(id, { key, replicaId, sinceMs: known?.sinceMs ?? nowMs, message, mend });
    }
    return known === undefined;
  }

  /** True if it was raised. */
  clear(key: ConditionKey, replicaId: string | null): boolean {
    return this.#byKey.delete(`${key} ${replicaId ?? ""}`);
  }

  clearReplica(replicaId: string): void {
    for (const [id, condition] of this.#byKey) if (condition.replicaId === replicaId) this.#byKey.delete(id);
  }

  has(key: ConditionKey, replicaId: string | null): boolean {
    return this.#byKey.has(`${key} ${replicaId ?? ""}`);
  }

  list(): readonly Condition[] {
    return [...this.#byKey.values()];
  }

  /** Conditions that found no room since the start. */
  get unkept(): number {
    return this.#unkept;
  }
}
