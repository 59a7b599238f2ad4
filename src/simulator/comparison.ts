import { curvesOf } from "./report/curves.ts";
import type { Curves } from "./report/curves.ts";
import { PooledCache } from "./report/pooledCache.ts";
import { summarise } from "./report/summary.ts";
import type { Summary } from "./report/summary.ts";
import { run } from "./run.ts";
import type { RouterSetup, RunSettings } from "./world/runSettings.ts";
import type { Workload } from "./workload/arrival.ts";
import type { World } from "./world/world.ts";

/** What is compared: each router at each rate with each seed, on the same engines. */
export interface ComparisonPlan {
  readonly settings: Omit<RunSettings, "router" | "seed">;
  readonly routers: readonly RouterSetup[];
  readonly rates: readonly number[];
  readonly seeds: readonly number[];
  /** Made anew for each run: the same requests for one rate and seed, as far as they come by themselves. */
  readonly workload: (rate: number, seed: number) => Workload;
  /** Whether requests arrive in the same order at each rate and with each router, so that one look at them is enough. */
  readonly fixedOrder: boolean;
}

/** One router at one rate. */
export interface Cell {
  readonly rate: number;
  readonly router: RouterSetup;
  /** In the order of the seeds. */
  readonly summaries: readonly Summary[];
  /** Of the first seed. */
  readonly curves: Curves;
}

export interface ComparisonHooks {
  /** `done` of `runs` have ended; the one under way has come so far. */
  readonly onProgress?: (done: number, runs: number, label: string, world: World | null) => void;
}

export function compare(plan: ComparisonPlan, hooks: ComparisonHooks = {}): readonly Cell[] {
  const { routers, rates, seeds } = plan;
  const runs = rates.length * routers.length * seeds.length;
  const pooledBySeed = new Map<number, number>();
  let done = 0;
  return rates.flatMap((rate) =>
    routers.map((router): Cell => {
      let curves: Curves | null = null;
      const summaries = seeds.map((seed) => {
        const label = `${router.label} at ${rate}, seed ${seed}`;
        hooks.onProgress?.(done, runs, label, null);
        const known = plan.fixedOrder ? pooledBySeed.get(seed) : undefined;
        const pooled = known === undefined ? pooledCache(plan.settings) : null;
        const finished = run({ ...plan.settings, router, seed }, plan.workload(rate, seed), {
          onProgress: (world) => hooks.onProgress?.(done, runs, label, world),
          onArrival: ({ chain, record }) => pooled?.see(chain, record.promptTokens),
        });
        done++;
        const pooledShare = pooled === null ? known! : pooled.cachedShare;
        pooledBySeed.set(seed, pooledShare);
        curves ??= curvesOf(finished);
        return summarise(finished, pooledShare);
      });
      return { rate, router, summaries, curves: curves! };
    }),
  );
}

function pooledCache({ engines }: ComparisonPlan["settings"]): PooledCache {
  const blocks = engines.reduce((sum, { core }) => sum + core.kvBlocks, 0);
  return new PooledCache(blocks, engines[0]!.core.blockTokens);
}
