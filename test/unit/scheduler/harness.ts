import { SeededRandom } from "#src/determinism/random.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import { RouterError } from "#src/errors/routerError.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import type { FleetOptions } from "#src/fleet/fleet.ts";
import type { Replica } from "#src/fleet/replica.ts";
import { EMPTY_HASHES } from "#src/request/identity.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { createPolicy } from "#src/routing/createPolicy.ts";
import { ClassTable } from "#src/scheduler/classes.ts";
import type { ServiceClass } from "#src/scheduler/classes.ts";
import type { AttemptOutcome, Usage } from "#src/scheduler/outcome.ts";
import { Placement } from "#src/scheduler/placement.ts";
import { QUEUE_LIMITS } from "#src/scheduler/queueLimits.ts";
import type { QueueLimits } from "#src/scheduler/queueLimits.ts";
import { Scheduler } from "#src/scheduler/scheduler.ts";
import type { SchedulerObserver } from "#src/scheduler/schedulerObserver.ts";
import type { SubmitOptions, Ticket } from "#src/scheduler/ticket.ts";

export const MODEL = "llama";

export function endpoint(name: string): EngineEndpoint {
  return {
    url: `http://${name}`,
    name,
    engine: null,
    role: "mixed",
    labels: {},
    apiKey: null,
    dataParallelRanks: null,
    prior: "llama-3.1-8b/h100_tp1",
  };
}

export function profile(
  slots: number,
  models: readonly string[] = [MODEL],
  adapters: readonly string[] = [],
): EngineProfile {
  return {
    kind: "vllm",
    version: null,
    dataParallelRanks: 1,
    models: [
      ...models.map((id) => ({ id, parent: null, maxModelTokens: 100_000 })),
      ...adapters.map((id) => ({ id, parent: models[0]!, maxModelTokens: null })),
    ],
    maxRunningRequests: slots,
    kvCapacityTokens: 1_000_000,
    kvBlockTokens: 16,
  };
}

/** Replicas `r0`, `r1`, … of one model, ready, each with `slots` batch slots. */
export function readyFleet(replicas: number, slots: number, options: FleetOptions = {}): Fleet {
  const fleet = new Fleet(options);
  const names = Array.from({ length: replicas }, (_, at) => `r${at}`);
  fleet.applyEndpoints("list", names.map(endpoint), 0);
  for (const name of names) {
    fleet.applyProfile(name, profile(slots), 0);
    fleet.applyHealth(name, "ready", 0);
  }
  return fleet;
}

let requests = 0;

export function request(over: Partial<RouteRequest> = {}): RouteRequest {
  return {
    id: `req-${String(requests++).padStart(8, "0")}`,
    model: MODEL,
    adapter: null,
    identity: {
      hashes: EMPTY_HASHES,
      blockTokens: 16,
      promptTokens: 1_000,
      promptBytes: 4_000,
      approximate: true,
      unhashable: null,
    },
    maxOutputTokens: 100,
    sequences: 1,
    session: null,
    tenant: "anonymous",
    className: "standard",
    arrivedMs: 0,
    deadlineMs: Number.POSITIVE_INFINITY,
    bodyBytes: 100,
    generates: true,
    ...over,
  };
}

/** A prompt of `blocks` blocks that begin like those of every other prompt of this `seed`. */
export function prefixed(seed: number, blocks: number, over: Partial<RouteRequest> = {}): RouteRequest {
  const hashes = BigUint64Array.from(
    { length: blocks },
    (_, at) => BigInt(seed * 1_000_003 + at + 1) * 0x9e3779b97f4a7c15n,
  );
  return request({
    identity: {
      hashes,
      blockTokens: 16,
      promptTokens: blocks * 16 + 1,
      promptBytes: blocks * 64,
      approximate: false,
      unhashable: null,
    },
    ...over,
  });
}

export interface Made {
  readonly scheduler: Scheduler;
  readonly fleet: Fleet;
}

export function made(
  fleet: Fleet,
  options: {
    limits?: Partial<QueueLimits>;
    classes?: readonly ServiceClass[];
    policy?: string;
    observer?: SchedulerObserver;
    seed?: number;
  } = {},
): Made {
  const policy = createPolicy(options.policy ?? "least-connections");
  const scheduler = new Scheduler({
    fleet,
    random: new SeededRandom(options.seed ?? 1),
    policyFor: () => policy,
    classes: new ClassTable(options.classes),
    limits: { ...QUEUE_LIMITS, ...options.limits },
    ...(options.observer === undefined ? {} : { observer: options.observer }),
  });
  return { scheduler, fleet };
}

/** A submitted request and what came of it. */
export class Submitted {
  readonly request: RouteRequest;
  readonly results: (Placement | RouterError)[] = [];
  lost = 0;
  ticket!: Ticket;

  constructor(request: RouteRequest) {
    this.request = request;
  }

  get placement(): Placement | null {
    return this.results[0] instanceof Placement ? this.results[0] : null;
  }

  get error(): RouterError | null {
    return this.results[0] instanceof RouterError ? this.results[0] : null;
  }
}

export function submit(
  scheduler: Scheduler,
  nowMs: number,
  over: Partial<RouteRequest> | RouteRequest = {},
  options: SubmitOptions = {},
): Submitted {
  const submitted = new Submitted("id" in over ? (over as RouteRequest) : request({ arrivedMs: nowMs, ...over }));
  submitted.ticket = scheduler.submit(submitted.request, nowMs, (result) => submitted.results.push(result), {
    onLost: () => submitted.lost++,
    ...options,
  });
  return submitted;
}

export const NOT_REPORTED: Usage = { promptTokens: null, cachedTokens: null, outputTokens: null };

export function answered(usage: Partial<Usage> = {}, status = 200): AttemptOutcome {
  return { kind: "answered", status, usage: { ...NOT_REPORTED, ...usage } };
}

export const FAILED: AttemptOutcome = {
  kind: "failed",
  started: false,
  error: new RouterError("engine_unreachable", "refused", { fault: "engine", httpStatus: 502, retryable: true }),
};

/** Everything the ledger counts on the replica. */
export function ownLoad({ load }: Replica): number[] {
  return [
    load.requests,
    load.sequences,
    load.waitingSequences,
    load.decodingSequences,
    load.decodeKvTokens,
    load.pendingPrefillTokens,
    load.pendingPrefillMs,
    load.reservedKvTokens,
    load.remainingOutputTokens,
  ];
}
