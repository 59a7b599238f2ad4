import { HashIndex } from "./hashIndex.ts";

/**
 * Told what enters and leaves the prefix cache, in order. Engines publish this as KV events. A hash can be stored several
 * times, for equal blocks that were computed apart, and is then removed as often.
 */
export interface CacheListener {
  /** Blocks `from` to `to` (exclusive) of a sequence, whose chain of hashes and owner are given, became findable. */
  stored(owner: unknown, chain: BigUint64Array, from: number, to: number): void;
  removed(hash: bigint): void;
  /** Block `at` of a chain is in the host's memory too. */
  offloaded?(owner: unknown, chain: BigUint64Array, at: number): void;
  /** A block is in the host's memory no longer. */
  dropped?(hash: bigint): void;
  /** Nothing is left, on the host neither. */
  cleared(): void;
}

/**
 * Paged KV memory. A block is held by `references` sequences; with none left it is free but, if it has a hash, still
 * findable until it is taken for something else. Free blocks form a list, least recently used first.
 */
export class BlockPool {
  readonly blocks: number;
  readonly #references: Int32Array;
  /** Neighbours in the free list; index `blocks` is its head and tail. */
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  readonly #index: HashIndex;
  readonly #listener: CacheListener | null;
  #free: number;

  constructor(blocks: number, listener: CacheListener | null = null) {
    this.blocks = blocks;
    this.#references = new Int32Array(blocks);
    this.#next = new Int32Array(blocks + 1);
    this.#previous = new Int32Array(blocks + 1);
    this.#index = new HashIndex(blocks);
    this.#listener = listener;
    this.#free = blocks;
    for (let at = 0; at <= blocks; at++) {
      this.#next[at] = at === blocks ? 0 : at + 1;
      this.#previous[at] = at === 0 ? blocks : at - 1;
    }
  }

  /** Blocks that can be taken, cached ones included. */
  get free(): number {
    return this.#free;
  }

  references(block: number): number {
    return this.#references[block] ?? 0;
  }

  /** The cached block with this hash, or -1. */
  find(low: number, high: number): number {
    return this.#index.find(low, high);
  }

  /** Takes a further reference on a cached block. */
  share(block: number): void {
    const references = this.#references[block] ?? 0;
    this.#references[block] = references + 1;
    if (references === 0) this.#unlink(block);
  }

  /** The least recently used free block, evicted from the cache if it was in it. There must be a free one. */
  take(): number {
    const block = this.#next[this.blocks] ?? 0;
    this.#unlink(block);
    this.#references[block] = 1;
    if (this.#index.has(block)) {
      this.#listener?.removed(this.#index.hashOf(block));
      this.#index.remove(block);
    }
    return block;
  }

  /** Makes a held block findable. Where another block has this hash already, that one goes on being found first. */
  publish(block: number, low: number, high: number): void {
    this.#index.add(block, low, high);
  }

  /**
   * Gives one reference back. A sequence releases its last block first, so that leaves of a prefix tree are evicted
   * before what they hang on.
   */
  release(block: number): void {
    const references = (this.#references[block] ?? 0) - 1;
    this.#references[block] = references;
    if (references > 0) return;
    // What nobody can find is used up first.
    if (this.#index.has(block)) this.#link(block, this.#previous[this.blocks] ?? 0);
    else this.#link(block, this.blocks);
  }

  /** Forgets every cached block. Refused (false) while any block is held. */
  clear(): boolean {
    if (this.#free !== this.blocks) return false;
    for (let block = 0; block < this.blocks; block++) if (this.#index.has(block)) this.#index.remove(block);
    this.#listener?.cleared();
    return true;
  }

  #unlink(block: number): void {
    const next = this.#next[block] ?? 0;
    const previous = this.#previous[block] ?? 0;
    this.#next[previous] = next;
    this.#previous[next] = previous;
    this.#free--;
  }

  #link(block: number, after: number): void {
    const next = this.#next[after] ?? 0;
    this.#next[after] = block;
    this.#previous[block] = after;
    this.#next[block] = next;
    this.#previous[next] = block;
    this.#free++;
  }
}
