/** Where a block lies, nearest first. An unknown name counts as the farthest, so that a hit is never priced too low. */
export type KvTier = "gpu" | "host" | "disk" | "remote";

/**
 * Blocks that are now on a tier, in prompt order; each is the child of the one before it, the first the child of
 * `parent`. `tokenIds.length === engineHashes.length * blockTokens`, always.
 *
 * `blockTokens` 0: the event names the blocks by their hashes only, as offloading does for blocks stored before under
 * the same hashes, or its tokens do not divide into its blocks.
 */
export interface KvStored {
  readonly kind: "stored";
  /** The engine's own handles, as unsigned 64 bits: wider hashes by their last 8 bytes, signed ones by two's complement. */
  readonly engineHashes: BigUint64Array;
  /** Null: the first block of a prompt. */
  readonly parent: bigint | null;
  /** Of EAGLE's bigram keys the first of each pair. */
  readonly tokenIds: Uint32Array;
  readonly blockTokens: number;
  readonly tier: KvTier;
  /** The KV cache group; 0 where an engine has only one. Hashes of different groups are different handles. */
  readonly group: number;
  /** False: a group (sliding window, Mamba) whose blocks say nothing about whole prefixes. */
  readonly fullAttention: boolean;
  /** The adapter's name; `id:<lora_id>` where an old engine tells only the number; null: the base model. */
  readonly loraName: string | null;
  /** The cache salt of the prompt. vLLM tells it with the first block only; its children inherit it. */
  readonly salt: string | null;
  /**
   * By block: what else its content depends on (media ids with their offsets, embeddings, tokens that are no numbers),
   * in one canonical string, or null. The whole is null where no block has any.
   */
  readonly blockKeys: readonly (string | null)[] | null;
  /**
   * Where a recording is made of the event: gets Kvasir's own hashes of its blocks, which a recording has instead of the
   * token ids. Where one is replayed: has them.
   */
  readonly own?: { hashes: BigUint64Array | null };
}

/** Blocks that a tier holds no longer. One event takes back one store of each hash. */
export interface KvRemoved {
  readonly kind: "removed";
  readonly engineHashes: BigUint64Array;
  /** Null: whichever tier holds them (TensorRT-LLM, where a block is on one tier at a time). */
  readonly tier: KvTier | null;
  readonly group: number;
}

/** Blocks that went from one tier to another (TensorRT-LLM; the others tell it as a store and a removal). */
export interface KvMoved {
  readonly kind: "moved";
  readonly engineHashes: BigUint64Array;
  readonly from: KvTier;
  readonly to: KvTier;
  readonly group: number;
}

/** The rank holds nothing any more, on no tier. */
export interface KvCleared {
  readonly kind: "cleared";
}

export type KvEvent = KvStored | KvRemoved | KvMoved | KvCleared;

/** What an engine's rank published in one step. Events are to be applied in order. */
export interface KvEventBatch {
  /** The rank of the stream, which for an engine that is one rank of several is not the number it gives itself. */
  readonly rank: number;
  readonly seq: number;
  /** On the engine's clock, since 1970; 0: not told. */
  readonly publishedMs: number;
  readonly events: readonly KvEvent[];
  /** Events of this batch that could not be read. A removal may be among them, so the view is no longer sure. */
  readonly unreadableEvents: number;
}
