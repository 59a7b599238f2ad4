import { ManualClock } from "#src/determinism/clock.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import type { EngineMetrics, ServedModel } from "#src/engines/vocabulary.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import type { FleetOptions } from "#src/fleet/fleet.ts";
import type { Replica } from "#src/fleet/replica.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";

export function endpoint(name: string, changes: Partial<EngineEndpoint> = {}): EngineEndpoint {
  return {
    url: `http://${name}`,
    name,
    engine: null,
    role: "mixed",
    labels: {},
    apiKey: null,
    dataParallelRanks: null,
    prior: null,
    ...changes,
  };
}

export function base(id: string, maxModelTokens: number | null = null): ServedModel {
  return { id, parent: null, maxModelTokens };
}

export function profile(changes: Partial<EngineProfile> = {}): EngineProfile {
  return {
    kind: "vllm",
    version: "0.32.0",
    dataParallelRanks: 1,
    models: [base("m")],
    maxRunningRequests: null,
    kvCapacityTokens: null,
    kvBlockTokens: null,
    ...changes,
  };
}

export function metrics(changes: Partial<EngineMetrics> = {}): EngineMetrics {
  return {
    runningRequests: null,
    waitingRequests: null,
    kvUsage: null,
    kvCapacityTokens: null,
    kvBlockTokens: null,
    maxRunningRequests: null,
    prefixQueriedTokensTotal: null,
    prefixHitTokensTotal: null,
    preemptionsTotal: null,
    promptTokensTotal: null,
    generatedTokensTotal: null,
    residentAdapters: null,
    maxResidentAdapters: null,
    draftTokensTotal: null,
    acceptedDraftTokensTotal: null,
    prefixCachingEnabled: null,
    asleep: null,
    ...changes,
  };
}

export function chain(...hashes: readonly number[]): { hashes: BigUint64Array; blockTokens: number } {
  return { hashes: BigUint64Array.from(hashes, BigInt), blockTokens: 16 };
}

export interface RequestChanges extends Partial<Omit<RouteRequest, "identity">> {
  readonly promptTokens?: number;
  readonly approximate?: boolean;
}

let requests = 0;

export function request({ promptTokens = 100, approximate = false, ...changes }: RequestChanges = {}): RouteRequest {
  return {
    id: `request-${++requests}`,
    model: "m",
    adapter: null,
    identity: { ...chain(), promptTokens, promptBytes: 4 * promptTokens, approximate, unhashable: null },
    maxOutputTokens: null,
    sequences: 1,
    session: null,
    tenant: "anonymous",
    className: "default",
    arrivedMs: 0,
    deadlineMs: 1e9,
    bodyBytes: 1000,
    generates: true,
    ...changes,
  };
}

/** A fleet of ready replicas a:1, b:1, … that serve model "m". */
export function readyFleet(
  names: readonly string[],
  options: FleetOptions = {},
  found: Partial<EngineProfile> = {},
): { fleet: Fleet; clock: ManualClock; replica: (id: string) => Replica } {
  const clock = new ManualClock(1000);
  const fleet = new Fleet(options);
  fleet.applyEndpoints(
    "list",
    names.map((name) => endpoint(name)),
    clock.nowMs(),
  );
  for (const name of names) {
    fleet.applyProfile(name, profile(found), clock.nowMs());
    fleet.applyHealth(name, "ready", clock.nowMs());
  }
  const replica = (id: string): Replica => {
    const known = fleet.byId(id);
    if (known === null) throw new Error(`no replica ${id}`);
    return known;
  };
  return { fleet, clock, replica };
}

export const NOBODY_EXCLUDED: ReadonlySet<string> = new Set();
