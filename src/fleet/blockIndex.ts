/**
 * Where a block lies on a replica is a mask of `1 << tier`: it may be on several at once. 0 is the GPU, 1 the host's
 * memory, 2 disk and stores shared by several engines, as far away as anything is.
 */
export const ON_GPU = 1;

/**
 * Leading blocks held, by `replica.index`. Cumulative over tiers: `host[i]` counts the blocks that are in GPU or host
 * memory, `disk[i]` those in any tier, so gpu ≤ host ≤ disk, and `host − gpu` blocks would have to be restored.
 */
export interface HeldBlocks {
  readonly gpu: Uint32Array;
  readonly host: Uint32Array;
  readonly disk: Uint32Array;
}

/** Room for replicas with indices below `replicas`. */
export function heldBlocks(replicas: number): HeldBlocks {
  return { gpu: new Uint32Array(replicas), host: new Uint32Array(replicas), disk: new Uint32Array(replicas) };
}

/** Answers which replica holds how much of a prompt: from own traffic, or from the engines' KV events. */
export interface BlockIndex {
  /**
   * Fills `out` at the indices of `candidates` (others keep what they had), in one walk over `hashes` that stops when
   * no candidate holds the next block. `out` has room for every index.
   */
  match(hashes: BigUint64Array, candidates: ArrayLike<{ readonly index: number }>, out: HeldBlocks): void;
  /** Forgets what the replica holds: restart, cache reset, removal. */
  clear(replicaIndex: number): void;
}
