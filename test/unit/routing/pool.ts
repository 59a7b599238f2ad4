import { SeededRandom } from "#src/determinism/random.ts";
import type { LoadView } from "#src/fleet/replicaLoad.ts";
import { PRIORS, prefillMs, stepMs } from "#src/hardware/stepTimes.ts";
import type { StepTimes } from "#src/hardware/stepTimes.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { ChoiceInput } from "#src/routing/policy.ts";
import type { PricedAdapters, PricedLatency, PricedReplica, ScrapedFacts } from "#src/routing/pricedReplica.ts";

export const H100 = PRIORS.get("llama-3.1-8b/h100_tp1")!;

/** A latency model that never learns. */
export function fixedLatency(times: StepTimes = H100, basis: PricedLatency["basis"] = "prior"): PricedLatency {
  return {
    basis,
    prefillBaseMs: times.prefillBaseMs,
    prefillMsPerKtok: times.prefillMsPerKtok,
    prefillMs: (newTokens, cachedTokens) => prefillMs(times, newTokens, cachedTokens),
    stepMs: (sequences, kvTokens) => stepMs(times, sequences, kvTokens),
  };
}

export function slowed(times: StepTimes, factor: number): StepTimes {
  return Object.fromEntries(Object.entries(times).map(([key, value]) => [key, value * factor])) as unknown as StepTimes;
}

export const IDLE: LoadView = {
  sequences: 0,
  waitingSequences: 0,
  decodingSequences: 0,
  decodeKvTokens: 0,
  pendingPrefillTokens: 0,
  pendingPrefillMs: 0,
  reservedKvTokens: 0,
  remainingOutputTokens: 0,
  foreignSequences: 0,
};

/** Load of `sequences` that decode, each with `context` tokens and `remaining` more to come. */
export function decoding(sequences: number, context: number, remaining: number): Partial<LoadView> {
  return {
    sequences,
    decodingSequences: sequences,
    decodeKvTokens: sequences * context,
    reservedKvTokens: sequences * (context + remaining),
    remainingOutputTokens: sequences * remaining,
  };
}

export interface Facts {
  id?: string;
  incarnation?: number;
  load?: Partial<LoadView>;
  requests?: number;
  earliestRemainingTokens?: number;
  latency?: PricedLatency;
  adapters?: Partial<PricedAdapters>;
  metrics?: { atMs: number; value?: Partial<ScrapedFacts["value"]> } | null;
  slots?: number;
  capacityTokens?: number;
  limitsBasis?: "engine" | "assumed";
}

let madeReplicas = 0;

export function replica(facts: Facts = {}): PricedReplica {
  const index = madeReplicas++;
  const load = { ...IDLE, ...facts.load };
  const value = {
    waitingRequests: null,
    kvUsage: null,
    prefixQueriedTokensTotal: null,
    prefixHitTokensTotal: null,
    ...facts.metrics?.value,
  };
  return {
    id: facts.id ?? `replica-${index}:8000`,
    index,
    incarnation: facts.incarnation ?? index + 1,
    load: {
      requests: facts.requests ?? load.sequences,
      at: () => load,
      earliestRemainingTokens: () => facts.earliestRemainingTokens ?? 0,
    },
    latency: facts.latency ?? fixedLatency(),
    adapters: { basis: "metrics", isResident: () => false, victim: null, ...facts.adapters },
    metrics: facts.metrics === undefined || facts.metrics === null ? null : { atMs: facts.metrics.atMs, value },
    limits: () => ({
      maxRunningRequests: facts.slots ?? 256,
      kvCapacityTokens: facts.capacityTokens ?? 450_000,
      kvBlockTokens: 16,
      assumed: facts.limitsBasis === "assumed" ? ["maxRunningRequests", "kvCapacityTokens"] : [],
    }),
  };
}

/** A request whose prompt is `promptTokens` long, in blocks of 16 whose hashes follow from `seed`. */
export function request(promptTokens: number, overrides: Partial<RouteRequest> & { seed?: number } = {}): RouteRequest {
  const { seed = 1, ...rest } = overrides;
  const random = new SeededRandom(seed);
  const hashes = BigUint64Array.from(
    { length: Math.floor(promptTokens / 16) },
    () => BigInt(random.below(2 ** 32)) * 4294967296n + BigInt(random.below(2 ** 32)),
  );
  return {
    id: "request-1",
    model: "llama",
    adapter: null,
    identity: {
      hashes,
      blockTokens: 16,
      promptTokens,
      promptBytes: promptTokens * 4,
      approximate: false,
      unhashable: null,
    },
    maxOutputTokens: null,
    sequences: 1,
    session: null,
    tenant: "anonymous",
    className: "standard",
    arrivedMs: 0,
    deadlineMs: 600_000,
    bodyBytes: promptTokens * 4,
    generates: true,
    ...rest,
  };
}

export function choiceInput(candidates: readonly PricedReplica[], overrides: Partial<ChoiceInput> = {}): ChoiceInput {
  return {
    request: request(1000),
    candidates,
    cachedTokens: new Float64Array(candidates.length),
    hostTokens: null,
    diskTokens: null,
    lineMs: null,
    heldTokens: null,
    expectedOutputTokens: 100,
    nowMs: 0,
    random: new SeededRandom(1),
    classTargets: null,
    ...overrides,
  };
}
