/** What a search found. */
export interface FoundPair {
  prefillAt: number;
  decodeAt: number;
  totalMs: number;
  /** Pairs whose price was computed. */
  priced: number;
}

/** The prices a search goes by. Indices are places among the candidates of each side. */
export interface PairCosts {
  /** Of a prefill leg alone. */
  readonly prefillMs: ArrayLike<number>;
  /** Of a decode leg alone with the least that a hand-off to it can cost. */
  readonly decodeMs: ArrayLike<number>;
  /** Of both together; never less than the sum of the two above. */
  readonly pairMs: (prefillAt: number, decodeAt: number) => number;
}

/** A pair that could be cheaper than the best by less than this share is not looked at. */
export const PRUNING_SLACK = 0.01;

/**
 * Looks at pairs in the order of their legs' prices and leaves out those that cannot be better than the best so far, or
 * than `ceilingMs`, by more than `PRUNING_SLACK`. So what it finds costs at most that share more than the cheapest pair,
 * or the cheapest pair is not worth that share less than the ceiling. One pair is priced in any case.
 */
export class PairSearch {
  readonly found: FoundPair = { prefillAt: 0, decodeAt: 0, totalMs: Number.POSITIVE_INFINITY, priced: 0 };
  #prefills: Uint32Array = new Uint32Array(8);
  #decodes: Uint32Array = new Uint32Array(8);
  #keys: ArrayLike<number> = [];
  readonly #byKey = (a: number, b: number): number => this.#keys[a]! - this.#keys[b]!;

  /** @param turn 0..1, where each list is entered, so that its order decides nothing between equals */
  search(costs: PairCosts, counts: { prefill: number; decode: number }, ceilingMs: number, turn: number): FoundPair {
    const { found } = this;
    const { prefillMs, decodeMs, pairMs } = costs;
    this.#prefills = this.#order(this.#prefills, counts.prefill, prefillMs, turn);
    this.#decodes = this.#order(this.#decodes, counts.decode, decodeMs, turn);
    found.totalMs = Number.POSITIVE_INFINITY;
    found.priced = 0;
    let bound = ceilingMs / (1 + PRUNING_SLACK);
    for (let d = 0; d < counts.decode; d++) {
      const decodeAt = this.#decodes[d]!;
      const least = decodeMs[decodeAt]!;
      for (let p = 0; p < counts.prefill; p++) {
        const prefillAt = this.#prefills[p]!;
        if (found.priced > 0 && !(least + prefillMs[prefillAt]! < bound)) {
          // The first of the row is the cheapest of it, and rows only get dearer.
          if (p === 0) return found;
          break;
        }
        const totalMs = pairMs(prefillAt, decodeAt);
        if (found.priced++ > 0 && !(totalMs < found.totalMs)) continue;
        found.prefillAt = prefillAt;
        found.decodeAt = decodeAt;
        found.totalMs = totalMs;
        bound = Math.min(bound, totalMs / (1 + PRUNING_SLACK));
      }
    }
    return found;
  }

  #order(room: Uint32Array, count: number, keys: ArrayLike<number>, turn: number): Uint32Array {
    const order = room.length < count ? new Uint32Array(2 * count) : room;
    const first = Math.floor(turn * count);
    for (let at = 0; at < count; at++) order[at] = (first + at) % count;
    this.#keys = keys;
    // Sorting is stable, so equals stay in the order in which the list was entered.
    order.subarray(0, count).sort(this.#byKey);
    return order;
  }
}
