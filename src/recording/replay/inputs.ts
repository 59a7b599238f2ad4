import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { KvEventBatch } from "#src/engines/events/kvEvent.ts";
import type { KvEventListener } from "#src/engines/events/kvEventListener.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import { kvEventsToFleet } from "#src/fleet/precise/kvEventsToFleet.ts";
import type { InputRecord, KnownEngine, RecordedScrape, Section } from "../format/records.ts";

const FLEET_KINDS = [
  "fleetTick",
  "endpoints",
  "profile",
  "models",
  "health",
  "scrape",
  "endpointRestarted",
  "drain",
  "resume",
  "kvBatch",
  "kvLost",
  "kvRestarted",
  "kvLive",
  "kvFailed",
] as const;

export type FleetInput = Extract<InputRecord, { kind: (typeof FLEET_KINDS)[number] }>;

export function isFleetInput(input: InputRecord): input is FleetInput {
  return (FLEET_KINDS as readonly string[]).includes(input.kind);
}

/** Gives recorded news of engines to a fleet. */
export class FleetInputs {
  readonly #fleet: Fleet;
  readonly #kvEvents: KvEventListener;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
    this.#kvEvents = kvEventsToFleet(fleet);
  }

  /** @param isExact the fleet is as it was when this was recorded */
  apply(input: FleetInput, isExact: boolean): void {
    const fleet = this.#fleet;
    switch (input.kind) {
      case "fleetTick":
        return fleet.tick(input.nowMs);
      case "endpoints":
        return fleet.applyEndpoints(input.source, input.endpoints, input.nowMs);
      case "profile":
        return fleet.applyProfile(input.engine, input.profile, input.nowMs);
      case "models":
        return fleet.applyModels(input.engine, input.models, input.nowMs);
      case "health":
        return fleet.applyHealth(input.engine, input.health, input.nowMs);
      case "scrape":
        return fleet.applyScrape(input.engine, asScrape(input.scrape), input.nowMs);
      case "endpointRestarted":
        return fleet.endpointRestarted(input.engine, input.nowMs);
      case "drain":
        fleet.drain(input.replicaId, input.nowMs);
        return;
      case "resume":
        fleet.resume(input.replicaId, input.nowMs);
        return;
      case "kvBatch":
      case "kvLost":
      case "kvRestarted":
      case "kvLive":
      case "kvFailed":
        return this.#kvEvent(input, isExact);
    }
  }

  /** What is known of the fleet where reading begins in the middle. */
  restate({ endpoints, engines, clockMs }: Section): void {
    for (const [source, named] of endpoints) this.#fleet.applyEndpoints(source, named, clockMs);
    for (const engine of engines) this.#restateEngine(engine, clockMs);
  }

  #restateEngine({ name, profile, health, scrape }: KnownEngine, nowMs: number): void {
    if (profile !== null) this.#fleet.applyProfile(name, profile, nowMs);
    if (health !== null) this.#fleet.applyHealth(name, health, nowMs);
    if (scrape !== null) this.#fleet.applyScrape(name, asScrape(scrape), nowMs);
  }

  #kvEvent(
    input: Extract<FleetInput, { kind: "kvBatch" | "kvLost" | "kvRestarted" | "kvLive" | "kvFailed" }>,
    isExact: boolean,
  ): void {
    const { rank, nowMs } = input;
    const endpoint = this.#fleet.ofEndpoint(input.engine)[0]?.endpoint;
    // The listener looks an engine up by its name, and ignores one that is gone.
    const named = endpoint ?? ({ name: input.engine } as EngineEndpoint);
    switch (input.kind) {
      case "kvBatch":
        return this.#kvEvents.batch(named, rank, isExact ? input.batch : withoutUnhashed(input.batch), nowMs);
      case "kvLost":
        return this.#kvEvents.lost(named, rank, input.why, nowMs);
      case "kvRestarted":
        return this.#kvEvents.restarted(named, rank, nowMs);
      case "kvLive":
        return this.#kvEvents.live(named, rank, { sinceSeq: null, complete: input.complete }, nowMs);
      case "kvFailed":
        return this.#kvEvents.failed(named, rank, input.why, nowMs);
    }
  }
}

/** Blocks that were not hashed when they were told cannot be hashed later: their tokens are not recorded. */
function withoutUnhashed(batch: KvEventBatch): KvEventBatch {
  const events = batch.events.filter(
    (event) => event.kind !== "stored" || event.blockTokens === 0 || (event.own?.hashes?.length ?? 0) > 0,
  );
  return { ...batch, events };
}

function asScrape({ byRank, missing }: RecordedScrape) {
  return { byRank: new Map(byRank), missing };
}
