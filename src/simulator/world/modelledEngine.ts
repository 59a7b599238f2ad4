import type { Random } from "#src/determinism/random.ts";
import { EngineCore } from "#src/emulator/scheduler/engineCore.ts";
import type { StepOutcome } from "#src/emulator/scheduler/engineCore.ts";
import type { KvEventBatch } from "#src/engines/events/kvEvent.ts";
import type { EngineMetrics } from "#src/engines/vocabulary.ts";
import { StepEnds } from "../events/stepEnds.ts";
import { NOTHING } from "../kernel/simEvent.ts";
import type { SimEvent } from "../kernel/simEvent.ts";
import { randomFor } from "../workload/seeds.ts";
import { CacheEvents } from "./cacheEvents.ts";
import type { Flight } from "./flight.ts";
import type { EngineSetup, RunSettings } from "./runSettings.ts";
import type { World } from "./world.ts";

/** `down`: nobody listens. `loading`: answers, but has no model yet. */
export type EngineState = "up" | "loading" | "down";

/** An engine under virtual time: the emulator's step scheduler, and a process that can die and come back. */
export class ModelledEngine {
  readonly index: number;
  readonly setup: EngineSetup;
  core: EngineCore<Flight>;
  state: EngineState = "up";
  /** Of the process. */
  incarnation = 1;
  slowFactor: number;
  /** Requests that are here. */
  readonly flights = new Set<Flight>();
  /** Time spent in steps, those under way counted whole. */
  busyMs = 0;
  #outcome: StepOutcome<Flight> | null = null;
  /** The event of the step under way; after a crash an earlier one is void. */
  #stepEnds: StepEnds;
  #consequence: readonly SimEvent<World>[];

  readonly #publishes: boolean;
  /** Draws which drafted tokens are right. */
  readonly #acceptance: Random;
  #cacheEvents: CacheEvents | null = null;

  constructor(index: number, setup: EngineSetup, { events, seed }: RunSettings) {
    this.index = index;
    this.setup = setup;
    this.slowFactor = setup.slowFactor;
    this.#publishes = events !== null;
    this.#acceptance = randomFor(seed, `acceptance ${index}`);
    this.core = this.#makeCore();
    this.#stepEnds = new StepEnds(this);
    this.#consequence = [this.#stepEnds];
  }

  get name(): string {
    return this.setup.name;
  }

  /** Whether its prompt and answer fit into memory at all. */
  fits({ record }: Flight): boolean {
    return this.core.fits(record.promptTokens, record.outputTokens);
  }

  /** A request has come; it joins the next step. */
  accept(flight: Flight, nowMs: number): void {
    const { promptTokens, outputTokens } = flight.record;
    flight.sequence = this.core.submit(
      {
        promptTokens,
        outputTokens,
        hashes: flight.chain,
        adapter: flight.request.adapter,
        priority: 0,
        readsCache: true,
        owner: flight,
      },
      nowMs,
    );
    this.flights.add(flight);
  }

  /** Begins a step, if there is something to do and none is under way. */
  begin(nowMs: number): readonly SimEvent<World>[] {
    if (this.#outcome !== null || this.state !== "up" || !this.core.hasWork) return NOTHING;
    const outcome = this.core.step(nowMs);
    if (outcome.tokens === 0) return NOTHING;
    this.#outcome = outcome;
    this.busyMs += outcome.durationMs;
    this.#stepEnds.atMs = nowMs + outcome.durationMs;
    return this.#consequence;
  }

  /** What the step that has just ended brought; null: its engine died meanwhile. Holds until the next one begins. */
  end(event: StepEnds): StepOutcome<Flight> | null {
    if (event !== this.#stepEnds) return null;
    const outcome = this.#outcome;
    this.#outcome = null;
    return outcome;
  }

  /** What its cache has become since the last call; null: nothing, or it does not tell. */
  takeEvents(nowMs: number): KvEventBatch | null {
    return this.#cacheEvents?.take(nowMs) ?? null;
  }

  /** The process dies with all it holds; returns whom that hits. */
  crash(): readonly Flight[] {
    const hit = [...this.flights];
    this.flights.clear();
    this.state = "down";
    this.core = this.#makeCore();
    this.#outcome = null;
    this.#stepEnds = new StepEnds(this);
    this.#consequence = [this.#stepEnds];
    return hit;
  }

  slowDown(factor: number): void {
    this.slowFactor = factor;
    this.core.slowFactor = factor;
  }

  /** What its metrics say now: what vLLM publishes, and no more. */
  metrics(): EngineMetrics {
    const { core, setup } = this;
    const { kvBlocks, blockTokens, maxResidentAdapters, prefixCaching } = core.options;
    const { counters } = core;
    return {
      runningRequests: core.running.length,
      waitingRequests: core.waitingCount,
      kvUsage: core.kvUsage,
      kvCapacityTokens: kvBlocks * blockTokens,
      kvBlockTokens: blockTokens,
      maxRunningRequests: null,
      prefixQueriedTokensTotal: counters.prefixQueriedTokens,
      prefixHitTokensTotal: counters.prefixHitTokens,
      preemptionsTotal: counters.preemptions,
      promptTokensTotal: counters.promptTokens,
      generatedTokensTotal: counters.generatedTokens,
      residentAdapters: core.residentAdapters,
      maxResidentAdapters,
      draftTokensTotal: setup.speculation === null ? null : counters.draftTokens,
      acceptedDraftTokensTotal: setup.speculation === null ? null : counters.acceptedDraftTokens,
      prefixCachingEnabled: prefixCaching,
      asleep: false,
    };
  }

  #makeCore(): EngineCore<Flight> {
    const { core: options, speculation } = this.setup;
    this.#cacheEvents = this.#publishes ? new CacheEvents(options.blockTokens) : null;
    const core = new EngineCore<Flight>({
      ...options,
      ...(this.#cacheEvents === null ? {} : { cacheListener: this.#cacheEvents }),
      ...(speculation === null ? {} : { speculation: { ...speculation, random: this.#acceptance } }),
    });
    core.slowFactor = this.slowFactor;
    return core;
  }
}
