import type { KvEvent, KvEventBatch, KvStored, KvTier } from "#src/engines/events/kvEvent.ts";

/** A stored event of a chain whose tokens are 1, 2, 3, …: `hashes` are the handles of its blocks. */
export function stored(hashes: readonly number[], changes: Partial<KvStored> = {}): KvStored {
  const blockTokens = changes.blockTokens ?? 4;
  return {
    kind: "stored",
    engineHashes: BigUint64Array.from(hashes, BigInt),
    parent: null,
    tokenIds: tokens(0, hashes.length * blockTokens),
    blockTokens,
    tier: "gpu",
    group: 0,
    fullAttention: true,
    loraName: null,
    salt: null,
    blockKeys: null,
    ...changes,
  };
}

/** Offloading's way: by hashes only. */
export function named(hashes: readonly number[], tier: KvTier): KvStored {
  return stored(hashes, { tokenIds: new Uint32Array(0), blockTokens: 0, tier });
}

export function removed(hashes: readonly number[], tier: KvTier | null = "gpu", group = 0): KvEvent {
  return { kind: "removed", engineHashes: BigUint64Array.from(hashes, BigInt), tier, group };
}

export const CLEARED: KvEvent = { kind: "cleared" };

export function batch(seq: number, ...events: readonly KvEvent[]): KvEventBatch {
  return { rank: 0, seq, publishedMs: 0, events, unreadableEvents: 0 };
}

/** Token ids from, from + 1, … */
export function tokens(from: number, count: number): Uint32Array {
  return Uint32Array.from({ length: count }, (_, at) => from + at + 1);
}
