import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import { RouterError } from "#src/errors/routerError.ts";
import type { KvEventListener } from "#src/engines/events/kvEventListener.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import { kvEventsToFleet } from "#src/fleet/precise/kvEventsToFleet.ts";
import { createPolicy } from "#src/routing/createPolicy.ts";
import { ClassTable } from "#src/scheduler/classes.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import { Scheduler } from "#src/scheduler/scheduler.ts";
import { RequestReaches } from "../events/requestReaches.ts";
import { RouterWakes } from "../events/routerWakes.ts";
import { NOTHING } from "../kernel/simEvent.ts";
import type { SimEvent } from "../kernel/simEvent.ts";
import { randomFor } from "../workload/seeds.ts";
import type { Flight } from "./flight.ts";
import type { ModelledEngine } from "./modelledEngine.ts";
import type { EngineSetup, RunSettings } from "./runSettings.ts";
import type { World } from "./world.ts";

/** Timers of a real router do not fire sooner than this. */
const LEAST_TIMER_MS = 1;
/** More than any engine has: a router without a queue does not count slots. */
const NO_LIMIT = 1_000_000;

interface Settled {
  readonly flight: Flight;
  readonly result: Placement | RouterError;
}

/** A router: the fleet's state and the scheduler that the gateway has, with this one's own view of the engines. */
export class ModelledRouter {
  readonly index: number;
  readonly fleet = new Fleet();
  readonly scheduler: Scheduler;
  /** Takes what engines publish of their caches. */
  readonly events: KvEventListener;
  /** When the last batch of each engine's events gets here. */
  readonly eventsUntilMs: number[];
  readonly #settings: RunSettings;
  /** Of each engine, the process that this router knows. */
  readonly #knownIncarnation: number[];
  /** What the scheduler decided and nobody has carried out yet. */
  #settled: Settled[] = [];
  #wake: RouterWakes | null = null;

  constructor(index: number, settings: RunSettings) {
    this.index = index;
    this.#settings = settings;
    this.events = kvEventsToFleet(this.fleet);
    const policy = createPolicy(settings.router.policy, settings.router.options);
    this.scheduler = new Scheduler({
      fleet: this.fleet,
      random: randomFor(settings.seed, `router ${index}`),
      policyFor: () => policy,
      classes: new ClassTable(settings.classes),
      limits: settings.queue,
    });
    this.fleet.applyEndpoints(
      "simulator",
      settings.engines.map((setup) => this.#endpoint(setup)),
      0,
    );
    this.#knownIncarnation = settings.engines.map(() => 0);
    this.eventsUntilMs = settings.engines.map(() => 0);
  }

  /** Gives a request to the scheduler: what it decides, now or later, `carryOut` will find. */
  submit(flight: Flight, nowMs: number): void {
    flight.record.attempts++;
    flight.placement = null;
    this.scheduler.submit(flight.request, nowMs, (result) => this.#settled.push({ flight, result }), {
      attempt: flight.record.attempts,
      excluded: flight.excluded,
    });
  }

  /** An attempt failed; another replica may get it, unless the client has seen a part of the answer. */
  attemptFailed(flight: Flight, error: RouterError, world: World): readonly SimEvent<World>[] {
    const { placement } = flight;
    if (placement === null) return NOTHING;
    this.scheduler.finish(placement, { kind: "failed", error, started: flight.started }, world.nowMs);
    flight.failure = error;
    flight.excluded.add(placement.replica.id);
    if (flight.started || flight.record.attempts > this.#settings.maxRetries)
      return world.end(flight, "failed", error.code);
    this.submit(flight, world.nowMs);
    return NOTHING;
  }

  /** What follows from what the scheduler has decided since the last call. */
  carryOut(world: World): readonly SimEvent<World>[] {
    const wake = this.#nextWake(world.nowMs);
    if (this.#settled.length === 0 && wake === null) return NOTHING;
    const consequences: SimEvent<World>[] = wake === null ? [] : [wake];
    const settled = this.#settled;
    this.#settled = [];
    for (const { flight, result } of settled) {
      if (result instanceof RouterError)
        consequences.push(
          ...world.end(flight, flight.failure === null ? "refused" : "failed", (flight.failure ?? result).code),
        );
      else {
        flight.placement = result;
        flight.record.boundMs = world.nowMs;
        flight.record.predictedCachedTokens = result.cachedTokensPredicted;
        consequences.push(new RequestReaches(flight, result, world.nowMs + this.#settings.networkMs));
      }
    }
    return consequences;
  }

  /** The timer of this event is up; false: another one has taken its place. */
  woken(event: RouterWakes): boolean {
    if (event !== this.#wake) return false;
    this.#wake = null;
    return true;
  }

  /** A probe of an engine: how it is, and whether it is the process that was known. */
  probed(engine: ModelledEngine, nowMs: number): void {
    const { name, state } = engine;
    if (state === "down") this.fleet.applyHealth(name, "unreachable", nowMs);
    else {
      this.meet(engine, nowMs);
      this.fleet.applyHealth(name, state === "up" ? "ready" : "loading", nowMs);
    }
  }

  /** Notices that another process answers there than before, and asks what it serves. */
  meet(engine: ModelledEngine, nowMs: number): void {
    const known = this.#knownIncarnation[engine.index]!;
    if (known === engine.incarnation) return;
    this.#knownIncarnation[engine.index] = engine.incarnation;
    if (known !== 0) this.fleet.endpointRestarted(engine.name, nowMs);
    this.fleet.applyProfile(engine.name, this.#profile(engine), nowMs);
    if (this.#settings.events === null) return;
    const { endpoint } = this.fleet.ofEndpoint(engine.name)[0]!;
    if (known !== 0) this.events.restarted(endpoint, 0, nowMs);
    this.events.live(endpoint, 0, { sinceSeq: null, complete: true }, nowMs);
  }

  /** Null: the timer that is set will do. */
  #nextWake(nowMs: number): RouterWakes | null {
    const dueMs = this.scheduler.nextWakeMs();
    if (dueMs === null || (this.#wake !== null && this.#wake.atMs <= dueMs)) return null;
    this.#wake = new RouterWakes(this, Math.max(dueMs, nowMs + LEAST_TIMER_MS));
    return this.#wake;
  }

  #endpoint({ name, prior, core }: EngineSetup): EngineEndpoint {
    return {
      url: `http://${name}`,
      name,
      engine: "vllm",
      role: "mixed",
      labels: {},
      apiKey: null,
      dataParallelRanks: 1,
      maxRunningRequests: this.#settings.router.binding === "immediate" ? NO_LIMIT : core.maxRunning,
      prior,
    };
  }

  #profile({ setup: { core } }: ModelledEngine): EngineProfile {
    const { model, adapters } = this.#settings;
    return {
      kind: "vllm",
      version: null,
      dataParallelRanks: 1,
      models: [
        { id: model, parent: null, maxModelTokens: null },
        ...adapters.map((id) => ({ id, parent: model, maxModelTokens: null })),
      ],
      maxRunningRequests: null,
      kvCapacityTokens: core.kvBlocks * core.blockTokens,
      kvBlockTokens: core.blockTokens,
      prefixCachingEnabled: core.prefixCaching,
    };
  }
}
