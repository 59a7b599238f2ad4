import type { Sequence } from "#src/emulator/scheduler/sequence.ts";
import { NOTHING } from "../kernel/simEvent.ts";
import type { SimEvent } from "../kernel/simEvent.ts";
import type { Flight } from "../world/flight.ts";
import type { ModelledEngine } from "../world/modelledEngine.ts";
import type { World } from "../world/world.ts";
import { publishCacheEvents } from "./publishCacheEvents.ts";
import { PRIORITY } from "./priorities.ts";

/** Output is reported to the scheduler at most this often per request: as in the gateway (`dispatch/carriage.ts`). */
const PROGRESS_EVERY_MS = 100;

/** A step of an engine ends: its tokens are there, and the next step begins with whoever is there by then. */
export class StepEnds implements SimEvent<World> {
  atMs = 0;
  readonly priority = PRIORITY.stepEnds;
  readonly #engine: ModelledEngine;

  constructor(engine: ModelledEngine) {
    this.#engine = engine;
  }

  handle(world: World): readonly SimEvent<World>[] {
    const engine = this.#engine;
    const outcome = engine.end(this);
    if (outcome === null) return NOTHING;
    const { nowMs } = world;
    for (const sequence of outcome.emitted) tokenSeen(sequence, nowMs);
    let followUps: readonly SimEvent<World>[] = NOTHING;
    for (const sequence of outcome.finished) {
      const following = finished(sequence, engine, world);
      if (following.length > 0) followUps = [...followUps, ...following];
    }
    const published = publishCacheEvents(engine, world);
    // First: what routers make of this step's end cannot be there in time for the next one.
    const next = engine.begin(nowMs);
    const decided = world.carryOut();
    if (followUps.length === 0 && decided.length === 0 && published.length === 0) return next;
    return [...next, ...published, ...decided, ...followUps];
  }
}

function tokenSeen(sequence: Sequence<Flight>, nowMs: number): void {
  const flight = sequence.owner;
  const { generatedTokens } = sequence;
  const isFirst = generatedTokens === 1;
  if (!isFirst && nowMs - flight.progressMs < PROGRESS_EVERY_MS) return;
  const { scheduler } = flight.router;
  const placement = flight.placement!;
  if (isFirst) {
    flight.record.firstTokenMs = nowMs;
    scheduler.firstToken(placement, nowMs);
  }
  flight.progressMs = nowMs;
  scheduler.progress(placement, generatedTokens, nowMs);
}

function finished(sequence: Sequence<Flight>, engine: ModelledEngine, world: World): readonly SimEvent<World>[] {
  const flight = sequence.owner;
  const { record } = flight;
  engine.flights.delete(flight);
  record.scheduledMs = sequence.firstScheduledMs ?? Number.NaN;
  record.cachedTokens = sequence.cachedTokens;
  record.preemptions = sequence.preemptions;
  // What generates nothing has its answer when its prompt is computed.
  if (record.outputTokens === 0) record.firstTokenMs = world.nowMs;
  flight.router.scheduler.finish(
    flight.placement!,
    {
      kind: "answered",
      status: 200,
      usage: {
        promptTokens: record.promptTokens,
        cachedTokens: sequence.cachedTokens,
        outputTokens: record.outputTokens,
      },
    },
    world.nowMs,
  );
  return world.end(flight, "answered", null);
}
