/** What the log needs to find a decision by. */
export interface LoggedDecision {
  readonly id: string;
  readonly requestId: string;
}

/**
 * The most recent decisions, for the admin API, in a ring. Each request adds one and hardly any is ever looked up, so
 * adding is one store and looking up is a walk.
 */
export class DecisionLog<D extends LoggedDecision> {
  readonly #ring: (D | undefined)[];
  /** Where the next one goes: over the oldest, once the ring is full. */
  #next = 0;
  #size = 0;

  constructor(maxDecisions = 4_096) {
    this.#ring = Array.from({ length: Math.max(0, maxDecisions) });
  }

  get size(): number {
    return this.#size;
  }

  add(decision: D): void {
    if (this.#ring.length === 0) return;
    this.#ring[this.#next] = decision;
    this.#next = (this.#next + 1) % this.#ring.length;
    if (this.#size < this.#ring.length) this.#size++;
  }

  byDecision(id: string): D | null {
    return this.#ring.find((decision) => decision?.id === id) ?? null;
  }

  /** Each attempt has its own; the first comes first. */
  byRequest(requestId: string): readonly D[] {
    return this.recent(this.#size)
      .filter((decision) => decision.requestId === requestId)
      .reverse();
  }

  /** The newest first. */
  recent(count: number): readonly D[] {
    const found: D[] = [];
    for (let back = 1; back <= Math.min(count, this.#size); back++) {
      const decision = this.#ring[(this.#next - back + this.#ring.length) % this.#ring.length];
      if (decision !== undefined) found.push(decision);
    }
    return found;
  }
}
