import { kernel, kernelMemory as memory, STRING_WINDOW_AT } from "./kernel.ts";

/** Bytes that a chain keeps before it hashes them. Two of them, and their hashes, fit a core's second-level cache. */
const WINDOW_BYTES = 64 * 1024;
/** Smallest chunk: with it a window gives as many hashes as `HASH_BYTES` holds. */
const MIN_CHUNK_BYTES = 128;
const SEED_BYTES = 8;
const HASH_BYTES = (WINDOW_BYTES / MIN_CHUNK_BYTES) * 8;
const REGION_BYTES = SEED_BYTES + HASH_BYTES + WINDOW_BYTES;
const REGIONS = 2;
/** End of what this file uses of the kernel's memory. */
export const REGIONS_END = REGIONS * REGION_BYTES;
if (REGIONS_END > STRING_WINDOW_AT) throw new RangeError("the kernel's memory is too small");

/** Below this a loop copies faster than a native call. */
const SHORT_BYTES = 48;

/**
 * Hashes a stream of bytes in equal chunks: h(i) = XXH64(chunk i, seed h(i-1)). XXH64 is fast and even, not secret: who
 * wants to can build two prompts with equal hashes, and gains a wrong prediction of his own cache hits.
 *
 * Works in a fixed region of the module's memory; a stream is written and finished without another one in the region.
 */
export class ChainHasher {
  readonly #seedAt: number;
  readonly #hashesAt: number;
  readonly #windowAt: number;
  readonly #windowEnd: number;
  readonly #hashView: BigUint64Array;
  readonly #seedView: Uint32Array;
  #at = 0;
  #chunkBytes = 0;
  #hashes: BigUint64Array = new BigUint64Array(0);
  #hashed = 0;

  constructor(region: number) {
    const base = region * REGION_BYTES;
    this.#seedAt = base;
    this.#hashesAt = base + SEED_BYTES;
    this.#windowAt = this.#hashesAt + HASH_BYTES;
    this.#windowEnd = this.#windowAt + WINDOW_BYTES;
    this.#hashView = new BigUint64Array(memory.buffer, this.#hashesAt, HASH_BYTES / 8);
    this.#seedView = new Uint32Array(memory.buffer, base, 2);
  }

  /**
   * Starts a stream whose chain begins with the seed given by `seedBy`, or with zero.
   *
   * @param chunkBytes a power of two, MIN_CHUNK_BYTES..WINDOW_BYTES
   * @param hashes gets the hash of every full chunk
   */
  begin(chunkBytes: number, hashes: BigUint64Array, seedBy: ChainHasher | null): void {
    this.#chunkBytes = chunkBytes;
    this.#hashes = hashes;
    this.#hashed = 0;
    this.#at = this.#windowAt;
    if (seedBy === null) this.#seedView.fill(0);
    else memory.copyWithin(this.#seedAt, seedBy.#seedAt, seedBy.#seedAt + SEED_BYTES);
  }

  addByte(byte: number): void {
    if (this.#at === this.#windowEnd) this.#flush();
    memory[this.#at++] = byte;
  }

  add(bytes: Buffer, start: number, end: number): void {
    let from = start;
    while (from < end) {
      if (this.#at === this.#windowEnd) this.#flush();
      const until = Math.min(end, from + (this.#windowEnd - this.#at));
      if (until - from <= SHORT_BYTES) {
        let at = this.#at;
        while (from < until) memory[at++] = bytes[from++]!;
        this.#at = at;
      } else {
        bytes.copy(memory, this.#at, from, until);
        this.#at += until - from;
        from = until;
      }
    }
  }

  /** Hashes what full chunks there are; the rest of the stream is not hashed. */
  end(): void {
    this.#flush();
  }

  /** Ends the stream and makes one hash of all of it, its length included: the seed of whoever is seeded by this. */
  endDigest(streamBytes: number): void {
    this.#flush();
    // What is left is less than a chunk; eight bytes of length and zeros make it a multiple of 32.
    for (let shift = 0; shift < 64; shift += 8) this.addByte(Math.floor(streamBytes / 2 ** shift) % 256);
    while ((this.#at - this.#windowAt) % 32 !== 0) this.addByte(0);
    kernel.chain(this.#windowAt, 1, this.#at - this.#windowAt, this.#hashesAt);
    this.#at = this.#windowAt;
    memory.copyWithin(this.#seedAt, this.#hashesAt, this.#hashesAt + SEED_BYTES);
  }

  /** The hash that the stream ended with. */
  digest(): bigint {
    return (BigInt(this.#seedView[1]!) << 32n) | BigInt(this.#seedView[0]!);
  }

  /** Adds the hash that another stream ended with. */
  addDigestOf(other: ChainHasher): void {
    this.add(memory, other.#seedAt, other.#seedAt + SEED_BYTES);
  }

  #flush(): void {
    const chunks = Math.floor((this.#at - this.#windowAt) / this.#chunkBytes);
    if (chunks === 0) return;
    kernel.chain(this.#windowAt, chunks, this.#chunkBytes, this.#hashesAt);
    const wanted = Math.min(chunks, this.#hashes.length - this.#hashed);
    if (wanted > 0) this.#hashes.set(this.#hashView.subarray(0, wanted), this.#hashed);
    this.#hashed += wanted;
    const lastAt = this.#hashesAt + (chunks - 1) * 8;
    memory.copyWithin(this.#seedAt, lastAt, lastAt + SEED_BYTES);
    const hashedEnd = this.#windowAt + chunks * this.#chunkBytes;
    memory.copyWithin(this.#windowAt, hashedEnd, this.#at);
    this.#at -= chunks * this.#chunkBytes;
  }
}

/** The two regions: one for what is being hashed, one for digests that go into it. */
export const mainChain = new ChainHasher(0);
export const digestChain = new ChainHasher(1);
