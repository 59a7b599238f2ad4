import { BlockPool, type CacheListener } from "./blockPool.ts";
import { HostTier } from "./hostTier.ts";
import type { Sequence } from "./sequence.ts";

export interface KvMemoryOptions {
  readonly kvBlocks: number;
  readonly blockTokens: number;
  readonly prefixCaching: boolean;
  /** Blocks of host memory to which full blocks are copied; absent: none. */
  readonly hostBlocks?: number;
  readonly cacheListener?: CacheListener;
}

/** Gives sequences their KV blocks, cached ones first, and takes them back. */
export class KvMemory<Owner> {
  readonly #pool: BlockPool;
  readonly #listener: CacheListener | null;
  readonly #host: HostTier;
  readonly #blockTokens: number;
  readonly #prefixCaching: boolean;
  /** The sequence that did not fit last time, and the free blocks it needs: no use in looking its prefix up before. */
  #refused: Sequence<Owner> | null = null;
  #refusedNeeds = 0;

  constructor(options: KvMemoryOptions) {
    this.#listener = options.cacheListener ?? null;
    this.#pool = new BlockPool(options.kvBlocks, this.#listener);
    this.#host = new HostTier(options.hostBlocks ?? 0, this.#listener);
    this.#blockTokens = options.blockTokens;
    this.#prefixCaching = options.prefixCaching;
  }

  get freeBlocks(): number {
    return this.#pool.free;
  }

  /** Share held by sequences, 0..1; cached blocks that nobody holds count as free. */
  get usage(): number {
    return 1 - this.#pool.free / this.#pool.blocks;
  }

  references(block: number): number {
    return this.#pool.references(block);
  }

  fits(tokens: number): boolean {
    return this.#blocksFor(tokens) <= this.#pool.blocks;
  }

  clearCache(): boolean {
    if (!this.#pool.clear()) return false;
    this.#host.clear();
    return true;
  }

  /**
   * Lets a sequence without blocks in: its cached prefix is shared, what comes next of it on the host gets blocks to be
   * copied into, and its next tokens (at most `budget`) get blocks.
   * Returns how many tokens that leaves to compute now; 0 if there is no room, and then nothing has changed.
   */
  enter(sequence: Sequence<Owner>, budget: number): number {
    if (sequence === this.#refused && this.#pool.free < this.#refusedNeeds) return 0;
    const hits = this.#countHits(sequence);
    const cachedTokens = (hits.blocks + hits.restorable) * this.#blockTokens;
    const tokens = Math.min(sequence.promptTokens + sequence.generatedTokens - cachedTokens, budget);
    const newBlocks = this.#blocksFor(cachedTokens + tokens) - hits.blocks;
    if (newBlocks > this.#pool.free - hits.idle) {
      this.#refused = sequence;
      this.#refusedNeeds = newBlocks + hits.idle;
      return 0;
    }
    this.#refused = null;
    for (let at = 0; at < hits.blocks; at++) {
      const block = this.#pool.find(sequence.hashWords[at * 2] ?? 0, sequence.hashWords[at * 2 + 1] ?? 0);
      this.#pool.share(block);
      sequence.addBlock(block);
    }
    sequence.publishedBlocks = hits.blocks;
    sequence.computedTokens = cachedTokens;
    sequence.restoredBlocks = hits.restorable;
    this.cover(sequence, cachedTokens + tokens);
    return tokens;
  }

  /** Gives a sequence the blocks for its first `tokens` tokens and publishes the full ones; false if memory is short. */
  cover(sequence: Sequence<Owner>, tokens: number): boolean {
    const missing = this.#blocksFor(tokens) - sequence.blockCount;
    if (missing > this.#pool.free) return false;
    for (let count = 0; count < missing; count++) sequence.addBlock(this.#pool.take());
    if (!this.#prefixCaching) return true;
    // Published with the step that computes them, so that a sibling in the same step already finds them.
    const full = Math.min(Math.floor(tokens / this.#blockTokens), sequence.hashWords.length / 2);
    const first = sequence.publishedBlocks;
    if (first >= full) return true;
    for (let at = first; at < full; at++) {
      this.#pool.publish(
        sequence.blocks[at] ?? 0,
        sequence.hashWords[at * 2] ?? 0,
        sequence.hashWords[at * 2 + 1] ?? 0,
      );
    }
    sequence.publishedBlocks = full;
    this.#listener?.stored(sequence.owner, sequence.hashes, first, full);
    this.#host.store(sequence.owner, sequence.hashes, first, full);
    return true;
  }

  /** Takes all blocks back. What is in the cache stays there until its block is needed. */
  release(sequence: Sequence<Owner>): void {
    for (let at = sequence.blockCount - 1; at >= 0; at--) this.#pool.release(sequence.blocks[at] ?? 0);
    sequence.blockCount = 0;
  }

  /**
   * Leading blocks in the cache, how many of them nobody holds, and how many that follow are on the host. At least one
   * token is left to compute.
   */
  #countHits(sequence: Sequence<Owner>): { blocks: number; idle: number; restorable: number } {
    const words = sequence.hashWords;
    const usable = Math.floor((sequence.promptTokens + sequence.generatedTokens - 1) / this.#blockTokens);
    const limit = this.#prefixCaching && sequence.readsCache ? Math.min(usable, words.length / 2) : 0;
    let blocks = 0;
    let idle = 0;
    for (; blocks < limit; blocks++) {
      const block = this.#pool.find(words[blocks * 2] ?? 0, words[blocks * 2 + 1] ?? 0);
      if (block === -1) break;
      if (this.#pool.references(block) === 0) idle++;
    }
    let restorable = 0;
    while (blocks + restorable < limit && this.#host.has(sequence.hashes[blocks + restorable] ?? 0n)) restorable++;
    return { blocks, idle, restorable };
  }

  #blocksFor(tokens: number): number {
    return Math.ceil(tokens / this.#blockTokens);
  }
}
