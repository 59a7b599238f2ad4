import { engineUnreachable } from "./failures.ts";
import type { SimEvent } from "../kernel/simEvent.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import type { Flight } from "../world/flight.ts";
import type { World } from "../world/world.ts";
import { PRIORITY } from "./priorities.ts";

/** A placed request gets to its engine. */
export class RequestReaches implements SimEvent<World> {
  readonly atMs: number;
  readonly priority = PRIORITY.requestReaches;
  readonly #flight: Flight;
  readonly #placement: Placement;

  constructor(flight: Flight, placement: Placement, atMs: number) {
    this.#flight = flight;
    this.#placement = placement;
    this.atMs = atMs;
  }

  handle(world: World): readonly SimEvent<World>[] {
    const flight = this.#flight;
    const placement = this.#placement;
    const { router, record } = flight;
    const engine = world.engineOf(placement.replica.endpoint.name);
    if (engine.state !== "up")
      return [...router.attemptFailed(flight, engineUnreachable(engine.name), world), ...router.carryOut(world)];
    record.engine = engine.index;
    record.reachedMs = world.nowMs;
    if (!engine.fits(flight)) {
      const usage = { promptTokens: null, cachedTokens: null, outputTokens: null };
      router.scheduler.finish(placement, { kind: "answered", status: 400, usage }, world.nowMs);
      return [...world.end(flight, "refused", "too_large_for_engine"), ...router.carryOut(world)];
    }
    engine.accept(flight, world.nowMs);
    return engine.begin(world.nowMs);
  }
}
