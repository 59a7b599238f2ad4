import type { PrefixIndex } from "../prefixIndex.ts";
import type { Replica } from "../replica.ts";

/*
 * The size of the blocks by which prompts and events are hashed: one for each pool, such that every engine's block is a
 * whole number of them. It stays as it is while any replica's view has blocks of that size.
 */

/** For prompts to this pool, in tokens; null: no replica has told yet. */
export function poolBlockTokens(pool: readonly Replica[], index: PrefixIndex): number | null {
  return inUse(pool, index, null) ?? leastReported(pool);
}

/** For the events of an engine whose blocks have so many tokens; null: the pool's blocks do not divide them. */
export function fittingBlockTokens(
  replica: Replica,
  engineBlockTokens: number,
  pools: readonly (readonly Replica[])[],
  index: PrefixIndex,
): number | null {
  const pool = pools.flat();
  const used = inUse(pool, index, replica);
  if (used !== null) return engineBlockTokens % used === 0 ? used : null;
  const reported = leastReported(pool);
  return reported !== null && engineBlockTokens % reported === 0 ? reported : engineBlockTokens;
}

function inUse(pool: readonly Replica[], index: PrefixIndex, exceptOf: Replica | null): number | null {
  for (const replica of pool) {
    if (replica === exceptOf) continue;
    const view = index.view(replica.index);
    if (view.ownBlockTokens !== null && view.state.state !== "absent") return view.ownBlockTokens;
  }
  return null;
}

function leastReported(pool: readonly Replica[]): number | null {
  let least: number | null = null;
  for (const { metrics, profile } of pool) {
    const reported = metrics?.value.kvBlockTokens ?? profile?.kvBlockTokens ?? null;
    if (reported !== null && reported >= 1) least = Math.min(least ?? reported, reported);
  }
  return least;
}
