const NONE = -1;

/**
 * Finds a block by its 64-bit hash. A `Map` keyed by bigint would allocate on every look-up, and there is one for each
 * block of each prompt. Blocks whose hashes meet in a bucket are chained through arrays by block: blocks come and go in
 * runs, so that these are read nearly in order, and the buckets alone, four bytes each, are read all over the place. Of
 * several blocks with one hash it finds the first that came.
 */
export class HashIndex {
  /** First block of each bucket. */
  readonly #first: Int32Array;
  readonly #mask: number;
  /** By block: the next one of its bucket, and its hash. */
  readonly #next: Int32Array;
  readonly #low: Int32Array;
  readonly #high: Int32Array;
  readonly #held: Uint8Array;

  constructor(blocks: number) {
    const buckets = 2 ** Math.ceil(Math.log2(Math.max(2, blocks)));
    this.#first = new Int32Array(buckets).fill(NONE);
    this.#mask = buckets - 1;
    this.#next = new Int32Array(blocks);
    this.#low = new Int32Array(blocks);
    this.#high = new Int32Array(blocks);
    this.#held = new Uint8Array(blocks);
  }

  /** The first block with this hash, or -1. */
  find(low: number, high: number): number {
    const lowWord = low | 0;
    const highWord = high | 0;
    let block = this.#first[this.#bucket(lowWord, highWord)]!;
    while (block !== NONE && (this.#low[block] !== lowWord || this.#high[block] !== highWord))
      block = this.#next[block]!;
    return block;
  }

  has(block: number): boolean {
    return this.#held[block] === 1;
  }

  /** The block must be held. */
  hashOf(block: number): bigint {
    return (BigInt(this.#high[block]! >>> 0) << 32n) | BigInt(this.#low[block]! >>> 0);
  }

  /** The block must not be held. */
  add(block: number, low: number, high: number): void {
    this.#held[block] = 1;
    this.#low[block] = low;
    this.#high[block] = high;
    this.#next[block] = NONE;
    const bucket = this.#bucket(low | 0, high | 0);
    let last = this.#first[bucket]!;
    if (last === NONE) {
      this.#first[bucket] = block;
      return;
    }
    while (this.#next[last] !== NONE) last = this.#next[last]!;
    this.#next[last] = block;
  }

  /** Removes a block that is held. */
  remove(block: number): void {
    this.#held[block] = 0;
    const bucket = this.#bucket(this.#low[block]!, this.#high[block]!);
    let before = this.#first[bucket]!;
    if (before === block) {
      this.#first[bucket] = this.#next[block]!;
      return;
    }
    while (this.#next[before] !== block) before = this.#next[before]!;
    this.#next[before] = this.#next[block]!;
  }

  /** The hashes are uniform already unless a caller counts them up, so one multiplication is enough. */
  #bucket(low: number, high: number): number {
    const mixed = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
    return (mixed ^ (mixed >>> 15)) & this.#mask;
  }
}
