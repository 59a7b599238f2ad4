import type { BlockIndex, HeldBlocks } from "./blockIndex.ts";

/** A prompt as the index sees it: part of `Identity`. */
export interface BlockChain {
  readonly hashes: BigUint64Array;
  readonly blockTokens: number;
}

/** Blocks that a request just placed will leave on its replica. Made by `place`, ended by `confirm` or `abandon`. */
export interface PlacedPrefix {
  readonly replicaIndex: number;
  readonly hashes: BigUint64Array;
  /** Leading blocks the index thought were there already, pending ones included. */
  readonly heldBlocks: number;
}

/** Learns from own traffic which replica holds which prefix. */
export class PrefixIndex implements BlockIndex {
  readonly #held = new Map<number, Set<bigint>>();

  /** Holder records, i.e. (block, replica) pairs. */
  get size(): number {
    return [...this.#held.values()].reduce((sum, one) => sum + one.size, 0);
  }

  match(hashes: BigUint64Array, candidates: ArrayLike<{ readonly index: number }>, out: HeldBlocks): void {
    for (let at = 0; at < candidates.length; at++) {
      const { index } = candidates[at]!;
      const held = this.#held.get(index);
      let blocks = 0;
      while (held !== undefined && blocks < hashes.length && held.has(hashes[blocks]!)) blocks++;
      out.gpu[index] = out.host[index] = out.disk[index] = blocks;
    }
  }

  /** Modelled capacity of the replica's cache in tokens. */
  setCapacity(replicaIndex: number, tokens: number): void {
    void [replicaIndex, tokens];
  }

  /** A request was placed: its blocks count at once, and are forgotten if it is not confirmed in time. */
  place(replicaIndex: number, chain: BlockChain, nowMs: number): PlacedPrefix {
    void nowMs;
    const held = this.#held.get(replicaIndex) ?? new Set<bigint>();
    this.#held.set(replicaIndex, held);
    let heldBlocks = 0;
    while (heldBlocks < chain.hashes.length && held.has(chain.hashes[heldBlocks]!)) heldBlocks++;
    for (const hash of chain.hashes) held.add(hash);
    return { replicaIndex, hashes: chain.hashes, heldBlocks };
  }

  /** The first token came: the blocks are there. */
  confirm(placed: PlacedPrefix, nowMs: number): void {
    void [placed, nowMs];
  }

  /** The request ended before its first token: blocks that only it promised are forgotten. */
  abandon(placed: PlacedPrefix): void {
    void placed;
  }

  /** The engine said how many leading blocks it really had when this request came. */
  correct(placed: PlacedPrefix, reportedBlocks: number): void {
    void [placed, reportedBlocks];
  }

  clear(replicaIndex: number): void {
    this.#held.delete(replicaIndex);
  }
}
