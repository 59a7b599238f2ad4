import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import type { EngineHealth } from "#src/engines/monitorListener.ts";
import type { ScrapeResult, ServedModel } from "#src/engines/vocabulary.ts";
import { Fleet, type FleetOptions } from "#src/fleet/fleet.ts";
import type { Recorder } from "./write/recorder.ts";

/** The fleet, with all news of engines written down. */
export class RecordedFleet extends Fleet {
  readonly #recorder: Recorder;

  constructor(options: FleetOptions, recorder: Recorder) {
    super(options);
    this.#recorder = recorder;
  }

  override applyEndpoints(source: string, endpoints: readonly EngineEndpoint[], nowMs: number): void {
    this.#recorded(
      (recorder) => recorder.endpoints(source, endpoints, nowMs),
      () => super.applyEndpoints(source, endpoints, nowMs),
    );
  }

  override applyProfile(endpointName: string, profile: EngineProfile, nowMs: number): void {
    this.#recorded(
      (recorder) => recorder.profile(endpointName, profile, nowMs),
      () => super.applyProfile(endpointName, profile, nowMs),
    );
  }

  override applyModels(endpointName: string, models: readonly ServedModel[], nowMs: number): void {
    this.#recorded(
      (recorder) => recorder.models(endpointName, models, nowMs),
      () => super.applyModels(endpointName, models, nowMs),
    );
  }

  override applyHealth(endpointName: string, health: EngineHealth, nowMs: number): void {
    this.#recorded(
      (recorder) => recorder.health(endpointName, health, nowMs),
      () => super.applyHealth(endpointName, health, nowMs),
    );
  }

  override applyScrape(endpointName: string, scrape: ScrapeResult, nowMs: number): void {
    this.#recorded(
      (recorder) => recorder.scrape(endpointName, scrape, nowMs),
      () => super.applyScrape(endpointName, scrape, nowMs),
    );
  }

  override endpointRestarted(endpointName: string, nowMs: number): void {
    this.#recorded(
      (recorder) => recorder.endpointRestarted(endpointName, nowMs),
      () => super.endpointRestarted(endpointName, nowMs),
    );
  }

  override drain(id: string, nowMs: number): boolean {
    return this.#recorded(
      (recorder) => recorder.ofReplica("drain", id, nowMs),
      () => super.drain(id, nowMs),
    );
  }

  override resume(id: string, nowMs: number): boolean {
    return this.#recorded(
      (recorder) => recorder.ofReplica("resume", id, nowMs),
      () => super.resume(id, nowMs),
    );
  }

  override tick(nowMs: number): void {
    this.#recorded(
      (recorder) => recorder.timed("fleetTick", nowMs),
      () => super.tick(nowMs),
    );
  }

  #recorded<Result>(record: (recorder: Recorder) => void, run: () => Result): Result {
    const recorder = this.#recorder;
    if (!recorder.enter()) return run();
    try {
      record(recorder);
      return run();
    } finally {
      recorder.leave();
    }
  }
}
