import type { Fleet } from "../fleet.ts";
import type { PrefixIndex } from "../prefixIndex.ts";
import type { Replica } from "../replica.ts";

/**
 * The size of the blocks by which prompts and events are hashed: one for each pool, such that every engine's block is a
 * whole number of them. So the smallest engine's counts, and when a smaller one comes, views that are kept in larger
 * blocks have to be told anew.
 */
export class PoolBlocks {
  readonly #fleet: Fleet;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** For prompts to this pool, in tokens; null: no replica has told yet. */
  of(pool: readonly Replica[]): number | null {
    return leastInUse(pool, this.#fleet.index, null) ?? leastReported(pool);
  }

  /** For the events of an engine whose blocks have so many tokens; null: neither divides the other, it or the pool's. */
  fitting(replica: Replica, engineBlockTokens: number, nowMs: number): number | null {
    const pool = this.#poolsOf(replica).flat();
    const own = fittingTokens(engineBlockTokens, leastInUse(pool, this.#fleet.index, replica), leastReported(pool));
    if (own !== null) this.#dropMisfits(pool, own, replica, nowMs);
    return own;
  }

  /** What these replicas serve is known: their views may have been told before it was. */
  joined(replicas: readonly Replica[], nowMs: number): void {
    for (const pool of replicas.flatMap((replica) => this.#poolsOf(replica))) {
      const blockTokens = this.of(pool);
      if (blockTokens !== null) this.#dropMisfits(pool, blockTokens, null, nowMs);
    }
  }

  #poolsOf({ profile }: Replica): (readonly Replica[])[] {
    return (profile?.models ?? []).map(({ id }) => this.#fleet.pool(id));
  }

  #dropMisfits(pool: readonly Replica[], blockTokens: number, exceptOf: Replica | null, nowMs: number): void {
    for (const replica of pool) {
      const view = this.#fleet.index.view(replica.index);
      if (replica === exceptOf || view.ownBlockTokens === null || view.ownBlockTokens === blockTokens) continue;
      view.drop("block_size", nowMs);
      this.#fleet.viewChanged(replica, nowMs);
    }
  }
}

function fittingTokens(engine: number, used: number | null, reported: number | null): number | null {
  if (used === null) return reported !== null && engine % reported === 0 ? reported : engine;
  if (engine % used === 0) return used;
  return used % engine === 0 ? engine : null;
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
