/** Where a block lies: GPU memory, or the host's, to which an engine may offload. */
export type CacheTier = "gpu" | "host";

/** What the blocks of one sequence hold, and what else their hashes depend on. */
export interface BlockContent {
  /** Prompt and answer; at least as long as the blocks that get full. */
  readonly tokens: Uint32Array;
  readonly adapter: string | null;
  readonly salt: string | null;
}

/** Blocks that are now on a tier. */
export interface StoredEvent {
  readonly kind: "stored";
  readonly tier: CacheTier;
  readonly hashes: BigUint64Array;
  /** Null: the first of them begins a prompt. */
  readonly parent: bigint | null;
  /** `hashes.length * blockTokens` of them. */
  readonly tokens: Uint32Array;
  readonly blockTokens: number;
  readonly adapter: { readonly name: string; readonly id: number } | null;
  readonly salt: string | null;
}

export interface RemovedEvent {
  readonly kind: "removed";
  readonly tier: CacheTier;
  readonly hash: bigint;
}

/** A change of the prefix cache, before an engine's version gives it its form on the wire. */
export type CacheEvent = StoredEvent | RemovedEvent | { readonly kind: "cleared" };
