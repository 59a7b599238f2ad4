import { defaultOptions } from "#src/emulator/engineOptions.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import type { Replica } from "#src/fleet/replica.ts";
import { SpecError } from "./fleetSpec.ts";
import type { EngineSetup } from "./world/runSettings.ts";

/** A fleet to simulate, made after one that was recorded. */
export interface RecordedEngines {
  readonly engines: readonly EngineSetup[];
  readonly adapters: readonly string[];
  readonly hasEvents: boolean;
  /** How many of the engines have times that were learned from the recorded traffic; those of the others are priors. */
  readonly learned: number;
}

/** Engines with the limits that a fleet's have, and the speed that its router has learned. Throws SpecError. */
export function recordedEngines(fleet: Fleet, model: string): RecordedEngines {
  const pool = fleet.pool(model);
  if (pool.length === 0) throw new SpecError(`no engine served ${model} when the recording ended`);
  const blockTokens = pool[0]!.limits().kvBlockTokens;
  return {
    engines: pool.map((replica) => setupOf(replica, blockTokens)),
    adapters: fleet.models().flatMap(({ id, parent }) => (parent === model ? [id] : [])),
    hasEvents: pool.every(({ index }) => fleet.index.view(index).state.state === "live"),
    learned: pool.filter(({ latency }) => latency.basis === "learned").length,
  };
}

/** Prompts are hashed once for all engines, so all get the first one's block. */
function setupOf(replica: Replica, blockTokens: number): EngineSetup {
  const { maxRunningRequests, kvCapacityTokens } = replica.limits();
  const caching = replica.metrics?.value.prefixCachingEnabled ?? replica.profile?.prefixCachingEnabled ?? true;
  return {
    name: replica.id,
    prior: replica.endpoint.prior,
    core: {
      times: replica.latency.coefficients,
      kvBlocks: Math.max(1, Math.floor(kvCapacityTokens / blockTokens)),
      blockTokens,
      maxRunning: maxRunningRequests,
      maxBatchedTokens: defaultOptions.maxBatchedTokens,
      policy: "fcfs",
      prefixCaching: caching,
      maxResidentAdapters: replica.metrics?.value.maxResidentAdapters ?? defaultOptions.maxResidentAdapters,
      adapterLoadMs: defaultOptions.adapterLoadMs,
    },
    slowFactor: 1,
    speculation: null,
  };
}
