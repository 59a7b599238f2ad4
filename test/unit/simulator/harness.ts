import type { EngineCoreOptions } from "#src/emulator/scheduler/engineCore.ts";
import type { StepTimes } from "#src/hardware/stepTimes.ts";
import type { Arrival, Workload } from "#src/simulator/workload/arrival.ts";
import type { EngineSetup, RouterSetup, RunSettings } from "#src/simulator/world/runSettings.ts";

export const MODEL = "model";

/** 10 ms for a thousand prompt tokens, 5 ms a step. */
export const TIMES: StepTimes = {
  prefillBaseMs: 1,
  prefillMsPerKtok: 10,
  prefillMsPerKtok2: 0,
  stepBaseMs: 5,
  stepMsPerSequence: 0.1,
  stepMsPerKtok: 0.01,
};

export function engine(name: string, over: Partial<EngineCoreOptions> = {}): EngineSetup {
  return {
    name,
    prior: null,
    slowFactor: 1,
    speculation: null,
    core: {
      times: TIMES,
      kvBlocks: 2_000,
      blockTokens: 16,
      maxRunning: 32,
      maxBatchedTokens: 2_048,
      policy: "fcfs",
      prefixCaching: true,
      maxResidentAdapters: 2,
      adapterLoadMs: 20,
      ...over,
    },
  };
}

export function engines(count: number, over: Partial<EngineCoreOptions> = {}): readonly EngineSetup[] {
  return Array.from({ length: count }, (_, at) => engine(`e${at}`, over));
}

export function router(policy: string, binding: RouterSetup["binding"] = "scheduler"): RouterSetup {
  return { label: policy, policy, options: {}, binding };
}

export function settings(over: Partial<RunSettings> = {}): RunSettings {
  return {
    model: MODEL,
    engines: engines(2),
    router: router("kvasir"),
    routers: 1,
    monitor: { scrapeEveryMs: 1_000, scrapeDelayMs: 0, scrapeLossShare: 0, healthEveryMs: 1_000 },
    networkMs: 1,
    maxRetries: 2,
    queue: { maxRequests: 1_000, maxBytes: Number.POSITIVE_INFINITY, maxWaitMs: 30_000 },
    classes: [],
    adapters: [],
    events: null,
    identityTokens: 16,
    tellsOutputLimit: false,
    incidents: [],
    sampleEveryMs: 1_000,
    seed: 1,
    ...over,
  };
}

let answers = 0;

export function arrival(atMs: number, over: Partial<Arrival> = {}): Arrival {
  const id = 10_000 + answers++;
  return {
    atMs,
    content: { ids: [id], tokens: 100 },
    promptTokens: 100,
    outputTokens: 10,
    answerId: 2 ** 40 + id,
    session: null,
    tenant: "anonymous",
    className: "standard",
    adapter: null,
    ...over,
  };
}

/** These requests, in order of time. */
export function fixed(arrivals: readonly Arrival[]): Workload {
  const sorted = arrivals.toSorted((a, b) => a.atMs - b.atMs);
  let at = 0;
  return { expected: sorted.length, next: () => sorted[at++] ?? null, ended: () => [] };
}
