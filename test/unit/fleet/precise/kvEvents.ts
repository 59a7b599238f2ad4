import type { KvEvent, KvEventBatch, KvStored, KvTier } from "#src/engines/events/kvEvent.ts";

/** A stored event of a chain whose tokens are 1, 2, 3, …: `hashes` are the handles of its blocks. */
export function stored(hashes: readonly number[], changes: Partial<KvStored> = {}): KvStored {
  const blockTokens = changes.blockTokens ?? 4;
  return {
    kind: "stored",
    engineHashes: handles64(hashes),
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
  return { kind: "removed", engineHashes: handles64(hashes), tier, group };
}

export const CLEARED: KvEvent = { kind: "cleared" };

export function batch(seq: number, ...events: readonly KvEvent[]): KvEventBatch {
  return { rank: 0, seq, publishedMs: 0, events, unreadableEvents: 0 };
}

/** Token ids from, from + 1, … */
export function tokens(from: number, count: number): Uint32Array {
  const ids = new Uint32Array(count);
  for (let at = 0; at < count; at++) ids[at] = from + at + 1;
  return ids;
}

function handles64(hashes: readonly number[]): BigUint64Array {
  const handles = new BigUint64Array(hashes.length);
  for (let at = 0; at < hashes.length; at++) handles[at] = BigInt(hashes[at]!);
  return handles;
}
