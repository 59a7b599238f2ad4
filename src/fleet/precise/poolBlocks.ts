import type { PrefixIndex } from "../prefixIndex.ts";
import type { Replica } from "../replica.ts";

/*
 * The size of the blocks by which prompts and events are hashed: one for each pool, such that every engine's block is a
 * whole number of them. So the smallest engine's counts, and when a smaller one comes, views that are kept in larger
 * blocks have to be told anew.
 */

/** For prompts to this pool, in tokens; null: no replica has told yet. */
export function poolBlockTokens(pool: readonly Replica[], index: PrefixIndex): number | null {
  return leastInUse(pool, index, null) ?? leastReported(pool);
}

/** For the events of an engine whose blocks have so many tokens; null: neither divides the other, it or the pool's. */
export function fittingBlockTokens(
  replica: Replica,
  engineBlockTokens: number,
  pools: readonly (readonly Replica[])[],
  index: PrefixIndex,
): number | null {
  const pool = pools.flat();
  const used = leastInUse(pool, index, replica);
  if (used !== null) {
    if (engineBlockTokens % used === 0) return used;
    return used % engineBlockTokens === 0 ? engineBlockTokens : null;
  }
  const reported = leastReported(pool);
  return reported !== null && engineBlockTokens % reported === 0 ? reported : engineBlockTokens;
}

/** Replicas whose views are kept in blocks of another size than their pool's. */
export function misfits(pool: readonly Replica[], index: PrefixIndex, blockTokens: number): readonly Replica[] {
  return pool.filter((replica) => {
    const { ownBlockTokens } = index.view(replica.index);
    return ownBlockTokens !== null && ownBlockTokens !== blockTokens;
  });
}

function leastInUse(pool: readonly Replica[], index: PrefixIndex, exceptOf: Replica | null): number | null {
  let least: number | null = null;
  for (const replica of pool) {
    const { ownBlockTokens } = index.view(replica.index);
    if (replica !== exceptOf && ownBlockTokens !== null) least = Math.min(least ?? ownBlockTokens, ownBlockTokens);
  }
  return least;
}

function leastReported(pool: readonly Replica[]): number | null {
  let least: number | null = null;
  for (const { metrics, profile } of pool) {
    const reported = metrics?.value.kvBlockTokens ?? profile?.kvBlockTokens ?? null;
    if (reported !== null && reported >= 1) least = Math.min(least ?? reported, reported);
  }
  return least;
}
