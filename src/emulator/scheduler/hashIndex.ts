/** Words of a slot: low and high word of the hash, the block, and one to fill a quarter of a cache line. */
const STRIDE = 4;
const LOW = 0;
const HIGH = 1;
const BLOCK = 2;
const EMPTY = -1;

/**
 * Finds a block by its 64-bit hash: open addressing over one typed array, as a `Map` keyed by bigint would allocate on
 * every look-up, and there is one for each block of each prompt. A slot has all that a probe compares, so that a probe
 * costs one access to memory. Of several blocks with one hash it finds the first that came.
 */
export class HashIndex {
  readonly #slots: Int32Array;
  readonly #mask: number;
  /** Where each block is; EMPTY: nowhere. */
  readonly #slotOf: Int32Array;

  constructor(blocks: number) {
    // At most half full, so that probes stay short.
    const size = 2 ** Math.ceil(Math.log2(Math.max(2, blocks * 2)));
    this.#slots = new Int32Array(size * STRIDE).fill(EMPTY);
    this.#mask = size - 1;
    this.#slotOf = new Int32Array(blocks).fill(EMPTY);
  }

  /** The first block with this hash, or -1. */
  find(low: number, high: number): number {
    const slots = this.#slots;
    const lowWord = low | 0;
    const highWord = high | 0;
    for (let slot = this.#home(lowWord, highWord); ; slot = (slot + 1) & this.#mask) {
      const at = slot * STRIDE;
      const block = slots[at + BLOCK]!;
      if (block === EMPTY) return -1;
      if (slots[at + LOW] === lowWord && slots[at + HIGH] === highWord) return block;
    }
  }

  has(block: number): boolean {
    return this.#slotOf[block] !== EMPTY;
  }

  /** The block must be held. */
  hashOf(block: number): bigint {
    const at = this.#slotOf[block]! * STRIDE;
    return (BigInt(this.#slots[at + HIGH]! >>> 0) << 32n) | BigInt(this.#slots[at + LOW]! >>> 0);
  }

  /** The block must not be held. */
  add(block: number, low: number, high: number): void {
    let slot = this.#home(low | 0, high | 0);
    while (this.#slots[slot * STRIDE + BLOCK] !== EMPTY) slot = (slot + 1) & this.#mask;
    this.#put(slot, low, high, block);
  }

  /** Removes a block that is held, closing the gap so that no probe ends early. Equal hashes keep their order. */
  remove(block: number): void {
    const slots = this.#slots;
    let gap = this.#slotOf[block]!;
    this.#slotOf[block] = EMPTY;
    for (let slot = (gap + 1) & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const at = slot * STRIDE;
      const other = slots[at + BLOCK]!;
      if (other === EMPTY) break;
      const low = slots[at + LOW]!;
      const high = slots[at + HIGH]!;
      const distanceFromHome = (slot - this.#home(low, high)) & this.#mask;
      const distanceFromGap = (slot - gap) & this.#mask;
      if (distanceFromHome >= distanceFromGap) {
        this.#put(gap, low, high, other);
        gap = slot;
      }
    }
    slots[gap * STRIDE + BLOCK] = EMPTY;
  }

  #put(slot: number, low: number, high: number, block: number): void {
    const at = slot * STRIDE;
    this.#slots[at + LOW] = low;
    this.#slots[at + HIGH] = high;
    this.#slots[at + BLOCK] = block;
    this.#slotOf[block] = slot;
  }

  /** The hashes are uniform already unless a caller counts them up, so one multiplication is enough. */
  #home(low: number, high: number): number {
    const mixed = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
    return (mixed ^ (mixed >>> 15)) & this.#mask;
  }
}
