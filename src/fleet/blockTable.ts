import { anEighthMore, bucketsFor, grownUint32 } from "./growing.ts";
import { HolderSets, NOBODY } from "./holderSets.ts";
import { ON_GPU } from "./blockIndex.ts";

const FIRST_BLOCKS = 1024;
/** Words of a block's record: low half of its hash, high half, next of its bucket or of the free list, its holders. */
const RECORD = 4;
const LOW = 0;
const HIGH = 1;
const CHAIN = 2;
const HOLDERS = 3;
/** Blocks that are read ahead at a time: as many cache misses as a core has under way at once. */
export const READ_AHEAD = 16;

/**
 * The blocks that anybody holds: 64-bit hash → small id (from 1; 0 means none), and for each the set of its holders.
 * Hashes are kept as two 32-bit halves, so that no BigInt is made on a look-up. Typed arrays that grow up to
 * `maxBlocks`. Blocks entered one after another mostly have ids one after another, which look-ups make use of.
 */
export class BlockTable {
  readonly #maxBlocks: number;
  readonly sets = new HolderSets();
  /** One more than there can be blocks, so that a guess or a run that goes one too far reads nothing. */
  #records = new Uint32Array((FIRST_BLOCKS + 2) * RECORD);
  #buckets = new Uint32Array(bucketsFor(FIRST_BLOCKS));
  #free = 0;
  #used = 0;
  #size = 0;
  #slower = 0;
  /** Of no meaning: what is read and not used, compilers leave out. */
  wasRead = 0;

  constructor(maxBlocks: number) {
    this.#maxBlocks = maxBlocks;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#records.byteLength + this.#buckets.byteLength + this.sets.bytes;
  }

  /** Whether anything is held anywhere but in GPU memory. */
  get hasSlowerTiers(): boolean {
    return this.#slower > 0;
  }

  /** @param guess a block that it may well be */
  find(low: number, high: number, guess = 0): number {
    const records = this.#records;
    let at = guess * RECORD;
    if (guess !== 0 && records[at + LOW] === low && records[at + HIGH] === high && records[at + HOLDERS] !== NOBODY)
      return guess;
    let block = this.#buckets[this.#bucket(low, high)]!;
    while (block !== 0) {
      at = block * RECORD;
      if (records[at + LOW] === low && records[at + HIGH] === high) break;
      block = records[at + CHAIN]!;
    }
    return block;
  }

  /**
   * Reads what the look-ups of the next READ_AHEAD hashes will read, as far as `until`: so their cache misses overlap
   * instead of coming one after another.
   */
  readAhead(halves: Uint32Array, from: number, until: number): void {
    const records = this.#records;
    const end = 2 * Math.min(until, from + READ_AHEAD);
    let sum = 0;
    for (let half = 2 * from; half < end; half += 2)
      sum ^= records[this.#buckets[this.#bucket(halves[half]!, halves[half + 1]!)]! * RECORD]!;
    this.wasRead = sum;
  }

  /** How many of the hashes from the one at `from` on are, with these holders, those of the blocks from `block` on. */
  runLength(block: number, holders: number, halves: Uint32Array, from: number): number {
    const records = this.#records;
    let at = block * RECORD;
    let half = 2 * from;
    while (
      half < halves.length &&
      records[at + LOW] === halves[half] &&
      records[at + HIGH] === halves[half + 1] &&
      records[at + HOLDERS] === holders
    ) {
      at += RECORD;
      half += 2;
    }
    return half / 2 - from;
  }

  /** Blocks that nobody holds yet must get their holders before anything else is done. */
  findOrAdd(low: number, high: number, guess = 0): number {
    const known = this.find(low, high, guess);
    if (known !== 0) return known;
    const block = this.#take();
    const records = this.#records;
    const at = block * RECORD;
    const bucket = this.#bucket(low, high);
    records[at + LOW] = low;
    records[at + HIGH] = high;
    records[at + CHAIN] = this.#buckets[bucket]!;
    records[at + HOLDERS] = NOBODY;
    this.#buckets[bucket] = block;
    this.#size++;
    return block;
  }

  /** Halves of a block's hash. */
  low(block: number): number {
    return this.#records[block * RECORD + LOW]!;
  }

  high(block: number): number {
    return this.#records[block * RECORD + HIGH]!;
  }

  /** The set of a block's holders, in `sets`. */
  holders(block: number): number {
    return this.#records[block * RECORD + HOLDERS]!;
  }

  /** On which tiers the replica has the block. */
  maskOf(block: number, replica: number): number {
    return this.sets.maskOf(this.holders(block), replica);
  }

  /** Says on which tiers the replica has the block now; a block that nobody has any more is gone. */
  setMask(block: number, replica: number, mask: number): void {
    const at = block * RECORD + HOLDERS;
    const before = this.#records[at]!;
    const after = this.sets.with(before, replica, mask);
    if (after === before) return;
    const maskBefore = this.sets.maskOf(before, replica);
    if (maskBefore > ON_GPU) this.#slower--;
    if (mask > ON_GPU) this.#slower++;
    this.#records[at] = after;
    this.sets.retain(after);
    this.sets.release(before);
    if (after === NOBODY) this.#remove(block);
  }

  #bucket(low: number, high: number): number {
    return (low ^ high) & (this.#buckets.length - 1);
  }

  #take(): number {
    if (this.#free !== 0) {
      const block = this.#free;
      this.#free = this.#records[block * RECORD + CHAIN]!;
      return block;
    }
    if ((this.#used + 2) * RECORD >= this.#records.length) this.#grow();
    return ++this.#used;
  }

  #remove(block: number): void {
    const records = this.#records;
    const at = block * RECORD;
    const bucket = this.#bucket(records[at + LOW]!, records[at + HIGH]!);
    let before = 0;
    for (let each = this.#buckets[bucket]!; each !== block; each = records[each * RECORD + CHAIN]!) before = each;
    if (before === 0) this.#buckets[bucket] = records[at + CHAIN]!;
    else records[before * RECORD + CHAIN] = records[at + CHAIN]!;
    records[at + CHAIN] = this.#free;
    this.#free = block;
    this.#size--;
  }

  /** Only called when the free list is empty, so every id up to `#used` is a block. */
  #grow(): void {
    const room = anEighthMore(this.#used, this.#maxBlocks);
    if (room <= this.#used) throw new RangeError(`more than ${this.#maxBlocks} blocks`);
    this.#records = grownUint32(this.#records, (room + 2) * RECORD);
    const buckets = bucketsFor(room);
    if (buckets === this.#buckets.length) return;
    this.#buckets = new Uint32Array(buckets);
    const records = this.#records;
    for (let block = 1; block <= this.#used; block++) {
      const bucket = this.#bucket(records[block * RECORD + LOW]!, records[block * RECORD + HIGH]!);
      records[block * RECORD + CHAIN] = this.#buckets[bucket]!;
      this.#buckets[bucket] = block;
    }
  }
}
