/**
 * Where decoded hashes and token ids lie: cut from larger arrays, since an array of its own costs V8 half a microsecond
 * and most events hold one block. Whoever keeps a part of a slab keeps the whole of it, so keep copies.
 */
const SLAB_HASHES = 4096;
const SLAB_TOKENS = 16_384;

export class HashSlab {
  #hashes = new BigUint64Array(SLAB_HASHES);
  #used = 0;
  /** The slab that `cut` last cut from, as words, low first: the byte order of every machine that Node runs on. */
  words = new Uint32Array(this.#hashes.buffer);
  /** Where the last cut begins in `words`. */
  wordsAt = 0;

  cut(count: number): BigUint64Array {
    if (count > this.#hashes.length - this.#used) {
      this.#hashes = new BigUint64Array(Math.max(count, SLAB_HASHES));
      this.words = new Uint32Array(this.#hashes.buffer);
      this.#used = 0;
    }
    const start = this.#used;
    this.#used += count;
    this.wordsAt = 2 * start;
    return this.#hashes.subarray(start, start + count);
  }
}

export class TokenSlab {
  #tokens = new Uint32Array(SLAB_TOKENS);
  #used = 0;

  cut(count: number): Uint32Array {
    if (count > this.#tokens.length - this.#used) {
      this.#tokens = new Uint32Array(Math.max(count, SLAB_TOKENS));
      this.#used = 0;
    }
    const start = this.#used;
    this.#used += count;
    return this.#tokens.subarray(start, start + count);
  }
}
