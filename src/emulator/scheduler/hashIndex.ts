/**
 * Finds a block by its 64-bit hash: open addressing over typed arrays, as a `Map` keyed by bigint would allocate on
 * every look-up, and there is one for each block of each prompt. Of several blocks with one hash it finds the first that
 * came.
 */
export class HashIndex {
  readonly #slots: Int32Array;
  readonly #mask: number;
  readonly #low: Uint32Array;
  readonly #high: Uint32Array;
  readonly #held: Uint8Array;

  constructor(blocks: number) {
    // At most half full, so that probes stay short.
    const size = 2 ** Math.ceil(Math.log2(Math.max(2, blocks * 2)));
    this.#slots = new Int32Array(size).fill(-1);
    this.#mask = size - 1;
    this.#low = new Uint32Array(blocks);
    this.#high = new Uint32Array(blocks);
    this.#held = new Uint8Array(blocks);
  }

  /** The first block with this hash, or -1. */
  find(low: number, high: number): number {
    for (let slot = this.#home(low, high); ; slot = (slot + 1) & this.#mask) {
      const block = this.#slots[slot] ?? -1;
      if (block === -1) return -1;
      if (this.#low[block] === low && this.#high[block] === high) return block;
    }
  }

  has(block: number): boolean {
    return this.#held[block] === 1;
  }

  hashOf(block: number): bigint {
    return (BigInt(this.#high[block] ?? 0) << 32n) | BigInt(this.#low[block] ?? 0);
  }

  /** The block must not be held. */
  add(block: number, low: number, high: number): void {
    this.#low[block] = low;
    this.#high[block] = high;
    this.#held[block] = 1;
    let slot = this.#home(low, high);
    while ((this.#slots[slot] ?? -1) !== -1) slot = (slot + 1) & this.#mask;
    this.#slots[slot] = block;
  }

  /** Removes a block that is held, closing the gap so that no probe ends early. Equal hashes keep their order. */
  remove(block: number): void {
    this.#held[block] = 0;
    let gap = this.#homeOf(block);
    while (this.#slots[gap] !== block) gap = (gap + 1) & this.#mask;
    for (let slot = (gap + 1) & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const other = this.#slots[slot] ?? -1;
      if (other === -1) break;
      const distanceFromHome = (slot - this.#homeOf(other)) & this.#mask;
      const distanceFromGap = (slot - gap) & this.#mask;
      if (distanceFromHome >= distanceFromGap) {
        this.#slots[gap] = other;
        gap = slot;
      }
    }
    this.#slots[gap] = -1;
  }

  #homeOf(block: number): number {
    return this.#home(this.#low[block] ?? 0, this.#high[block] ?? 0);
  }

  /** The hashes are uniform already unless a caller counts them up, so one multiplication is enough. */
  #home(low: number, high: number): number {
    const mixed = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
    return (mixed ^ (mixed >>> 15)) & this.#mask;
  }
}
