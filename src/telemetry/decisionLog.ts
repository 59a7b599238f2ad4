/** What the log needs to find a decision by. */
export interface LoggedDecision {
  readonly id: string;
  readonly requestId: string;
}

/** The most recent decisions, for the admin API. The oldest make place for the newest. */
export class DecisionLog<D extends LoggedDecision> {
  readonly #maxDecisions: number;
  readonly #byId = new Map<string, D>();
  readonly #byRequest = new Map<string, D[]>();

  constructor(maxDecisions = 4_096) {
    this.#maxDecisions = maxDecisions;
  }

  get size(): number {
    return this.#byId.size;
  }

  add(decision: D): void {
    if (this.#maxDecisions <= 0) return;
    if (this.#byId.size >= this.#maxDecisions) this.#dropOldest();
    this.#byId.set(decision.id, decision);
    const ofRequest = this.#byRequest.get(decision.requestId);
    if (ofRequest === undefined) this.#byRequest.set(decision.requestId, [decision]);
    else ofRequest.push(decision);
  }

  byDecision(id: string): D | null {
    return this.#byId.get(id) ?? null;
  }

  /** Each attempt has its own; the first comes first. */
  byRequest(requestId: string): readonly D[] {
    return this.#byRequest.get(requestId) ?? [];
  }

  /** The newest first. */
  recent(count: number): readonly D[] {
    return [...this.#byId.values()].slice(-Math.max(1, count)).reverse();
  }

  #dropOldest(): void {
    const oldest = this.#byId.values().next().value;
    if (oldest === undefined) return;
    this.#byId.delete(oldest.id);
    const left = (this.#byRequest.get(oldest.requestId) ?? []).filter(({ id }) => id !== oldest.id);
    if (left.length === 0) this.#byRequest.delete(oldest.requestId);
    else this.#byRequest.set(oldest.requestId, left);
  }
}
