/** A source of random numbers. Passed in wherever a decision is made, so that decisions can be replayed. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform integer in [0, bound). */
  below(bound: number): number;
}

/**
 * Mulberry32: 32 bits of state, period 2^32, passes the gjrand tests that matter for tie-breaking and sampling.
 * Small on purpose: a decision is replayed by its seed alone.
 */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }
}
