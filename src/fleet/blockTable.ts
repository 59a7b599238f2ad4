import { grownUint32, powerOfTwo } from "./growing.ts";

const FIRST_BLOCKS = 1024;

/**
 * The blocks that anybody holds: 64-bit hash → small id (from 1; 0 means none), and for each the set of its holders as
 * bits by replica index. Hashes are kept as two 32-bit halves, so that no BigInt is made on a look-up. Hash chains in
 * typed arrays; they grow by doubling up to `maxBlocks`.
 */
export class BlockTable {
  readonly #maxBlocks: number;
  #low = new Uint32Array(FIRST_BLOCKS + 1);
  #high = new Uint32Array(FIRST_BLOCKS + 1);
  /** Next block of the same bucket, or of the free list. */
  #chain = new Uint32Array(FIRST_BLOCKS + 1);
  #buckets = new Uint32Array(FIRST_BLOCKS);
  #holders: Uint32Array<ArrayBuffer>;
  #wordsPerBlock: number;
  #free = 0;
  #used = 0;
  #size = 0;

  constructor(maxBlocks: number, replicas = 32) {
    this.#maxBlocks = maxBlocks;
    this.#wordsPerBlock = powerOfTwo(Math.ceil(replicas / 32));
    this.#holders = new Uint32Array((FIRST_BLOCKS + 1) * this.#wordsPerBlock);
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return (
      this.#low.byteLength +
      this.#high.byteLength +
      this.#chain.byteLength +
      this.#buckets.byteLength +
      this.#holders.byteLength
    );
  }

  /** 32-bit words of a block's holder set. */
  get wordsPerBlock(): number {
    return this.#wordsPerBlock;
  }

  /** The holder sets of all blocks; that of `block` begins at `block * wordsPerBlock`. Valid until the next `add`. */
  get holders(): Uint32Array {
    return this.#holders;
  }

  find(low: number, high: number): number {
    let block = this.#buckets[this.#bucket(low, high)]!;
    while (block !== 0 && (this.#low[block] !== low || this.#high[block] !== high)) block = this.#chain[block]!;
    return block;
  }

  /** The hash must not be there. The caller sees to it that there are at most `maxBlocks`. */
  add(low: number, high: number): number {
    const block = this.#take();
    this.#low[block] = low;
    this.#high[block] = high;
    const bucket = this.#bucket(low, high);
    this.#chain[block] = this.#buckets[bucket]!;
    this.#buckets[bucket] = block;
    this.#size++;
    return block;
  }

  setHolder(block: number, replicaIndex: number): void {
    this.#holders[block * this.#wordsPerBlock + (replicaIndex >>> 5)]! |= 1 << (replicaIndex & 31);
  }

  /** Takes a holder away, and the block too if that was its last. */
  unsetHolder(block: number, replicaIndex: number): void {
    const from = block * this.#wordsPerBlock;
    this.#holders[from + (replicaIndex >>> 5)]! &= ~(1 << (replicaIndex & 31));
    for (let word = 0; word < this.#wordsPerBlock; word++) if (this.#holders[from + word] !== 0) return;
    this.#remove(block);
  }

  /** Makes room for replicas with indices below `replicas`. */
  widen(replicas: number): void {
    const words = powerOfTwo(Math.ceil(replicas / 32));
    if (words <= this.#wordsPerBlock) return;
    const wider = new Uint32Array(this.#low.length * words);
    for (let block = 0; block < this.#low.length; block++)
      for (let word = 0; word < this.#wordsPerBlock; word++)
        wider[block * words + word] = this.#holders[block * this.#wordsPerBlock + word]!;
    this.#holders = wider;
    this.#wordsPerBlock = words;
  }

  #bucket(low: number, high: number): number {
    return (low ^ high) & (this.#buckets.length - 1);
  }

  #take(): number {
    if (this.#free !== 0) {
      const block = this.#free;
      this.#free = this.#chain[block]!;
      return block;
    }
    if (this.#used + 1 >= this.#low.length) this.#grow();
    return ++this.#used;
  }

  #remove(block: number): void {
    const bucket = this.#bucket(this.#low[block]!, this.#high[block]!);
    let before = 0;
    let at = this.#buckets[bucket]!;
    while (at !== block) {
      before = at;
      at = this.#chain[at]!;
    }
    if (before === 0) this.#buckets[bucket] = this.#chain[block]!;
    else this.#chain[before] = this.#chain[block]!;
    this.#chain[block] = this.#free;
    this.#free = block;
    this.#size--;
  }

  /** Only called when the free list is empty, so every id up to `#used` is a block. */
  #grow(): void {
    const room = Math.min(this.#maxBlocks, (this.#low.length - 1) * 2) + 1;
    if (room <= this.#low.length) throw new RangeError(`more than ${this.#maxBlocks} blocks`);
    this.#low = grownUint32(this.#low, room);
    this.#high = grownUint32(this.#high, room);
    this.#chain = grownUint32(this.#chain, room);
    this.#holders = grownUint32(this.#holders, room * this.#wordsPerBlock);
    this.#buckets = new Uint32Array(powerOfTwo(room - 1));
    for (let block = 1; block <= this.#used; block++) {
      const bucket = this.#bucket(this.#low[block]!, this.#high[block]!);
      this.#chain[block] = this.#buckets[bucket]!;
      this.#buckets[bucket] = block;
    }
  }
}
