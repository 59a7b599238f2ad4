/** Tiers that are counted apart; tier t is bit t of a block's mask. */
export const GPU = 0;
export const HOST = 1;
export const DISK = 2;
export type TierIndex = typeof GPU | typeof HOST | typeof DISK;
/** Nearest first. */
export const TIERS = [GPU, HOST, DISK] as const;

const COUNT_SHIFT = [0, 8, 12] as const;
const MOST_COPIES = [255, 15, 15] as const;

const FIRST_SLOTS = 64;
/** Longer searches cost more than the room they save. */
const MAX_LOAD = 0.8;
const GROWTH = 1.125;

/**
 * One engine's block hashes (handles) → own blocks, and how many copies of it the engine stores on each tier. Open
 * addressing: an entry is two words of handle, its own blocks, and two bytes of counts. Slots are valid until the next
 * `add` or `remove`.
 */
export class HandleTable {
  /** Own blocks that make up one of the engine's. */
  readonly blocksEach: number;
  readonly #words: number;
  #entries: Uint32Array<ArrayBuffer>;
  /** Zero: the slot is free. */
  #counts: Uint16Array<ArrayBuffer>;
  #slots = FIRST_SLOTS;
  #size = 0;

  constructor(blocksEach: number) {
    this.blocksEach = blocksEach;
    this.#words = 2 + blocksEach;
    this.#entries = new Uint32Array(FIRST_SLOTS * this.#words);
    this.#counts = new Uint16Array(FIRST_SLOTS);
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#entries.byteLength + this.#counts.byteLength;
  }

  /** -1: not there. */
  find(low: number, high: number): number {
    const entries = this.#entries;
    const words = this.#words;
    let slot = this.#home(low, high);
    while (this.#counts[slot] !== 0) {
      if (entries[slot * words] === low && entries[slot * words + 1] === high) return slot;
      if (++slot === this.#slots) slot = 0;
    }
    return -1;
  }

  /** It must not be there; gets its blocks by `setBlock`. */
  add(low: number, high: number, tier: TierIndex): number {
    if (this.#size + 1 > this.#slots * MAX_LOAD) this.#grow();
    const slot = this.#freeSlot(low, high);
    this.#entries[slot * this.#words] = low;
    this.#entries[slot * this.#words + 1] = high;
    this.#counts[slot] = 1 << COUNT_SHIFT[tier];
    this.#size++;
    return slot;
  }

  /** Moves those that it was in the way of, so that no search ends too early. */
  remove(slot: number): void {
    const words = this.#words;
    let hole = slot;
    let each = slot;
    for (;;) {
      if (++each === this.#slots) each = 0;
      if (this.#counts[each] === 0) break;
      const home = this.#home(this.#entries[each * words]!, this.#entries[each * words + 1]!);
      const stays = hole <= each ? hole < home && home <= each : hole < home || home <= each;
      if (stays) continue;
      this.#entries.copyWithin(hole * words, each * words, (each + 1) * words);
      this.#counts[hole] = this.#counts[each]!;
      hole = each;
    }
    this.#counts[hole] = 0;
    this.#size--;
  }

  /** The engine's hash. */
  low(slot: number): number {
    return this.#entries[slot * this.#words]!;
  }

  high(slot: number): number {
    return this.#entries[slot * this.#words + 1]!;
  }

  block(slot: number, part: number): number {
    return this.#entries[slot * this.#words + 2 + part]!;
  }

  setBlock(slot: number, part: number, block: number): void {
    this.#entries[slot * this.#words + 2 + part] = block;
  }

  copies(slot: number, tier: TierIndex): number {
    return (this.#counts[slot]! >>> COUNT_SHIFT[tier]) & MOST_COPIES[tier];
  }

  /** False: more than can be counted. */
  addCopy(slot: number, tier: TierIndex): boolean {
    if (this.copies(slot, tier) === MOST_COPIES[tier]) return false;
    this.#counts[slot]! += 1 << COUNT_SHIFT[tier];
    return true;
  }

  /** There must be one. An entry without copies must be removed at once. */
  removeCopy(slot: number, tier: TierIndex): void {
    this.#counts[slot]! -= 1 << COUNT_SHIFT[tier];
  }

  hasCopies(slot: number): boolean {
    return this.#counts[slot] !== 0;
  }

  /** The own blocks of all handles, each once, latest id first. */
  allBlocks(): Uint32Array {
    const all = new Uint32Array(this.#size * this.blocksEach);
    let at = 0;
    for (let slot = 0; slot < this.#slots; slot++) {
      if (this.#counts[slot] === 0) continue;
      for (let part = 0; part < this.blocksEach; part++) all[at++] = this.block(slot, part);
    }
    all.sort().reverse();
    let kept = 0;
    for (let each = 0; each < all.length; each++)
      if (each === 0 || all[each] !== all[each - 1]) all[kept++] = all[each]!;
    return all.subarray(0, kept);
  }

  /** Where the search for a handle begins. Engines hash well, but it takes little to not rely on it. */
  #home(low: number, high: number): number {
    const mixed = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
    return Math.floor((((mixed ^ (mixed >>> 15)) >>> 0) * this.#slots) / 2 ** 32);
  }

  #freeSlot(low: number, high: number): number {
    let slot = this.#home(low, high);
    while (this.#counts[slot] !== 0) if (++slot === this.#slots) slot = 0;
    return slot;
  }

  #grow(): void {
    const entries = this.#entries;
    const counts = this.#counts;
    const words = this.#words;
    const slots = this.#slots;
    this.#slots = Math.ceil(slots * GROWTH);
    this.#entries = new Uint32Array(this.#slots * words);
    this.#counts = new Uint16Array(this.#slots);
    for (let from = 0; from < slots; from++) {
      if (counts[from] === 0) continue;
      const to = this.#freeSlot(entries[from * words]!, entries[from * words + 1]!);
      for (let word = 0; word < words; word++) this.#entries[to * words + word] = entries[from * words + word]!;
      this.#counts[to] = counts[from]!;
    }
  }
}
