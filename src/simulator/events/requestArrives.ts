import type { SimEvent } from "../kernel/simEvent.ts";
import type { Arrival } from "../workload/arrival.ts";
import type { World } from "../world/world.ts";
import { PRIORITY } from "./priorities.ts";

/** A client sends a request. */
export class RequestArrives implements SimEvent<World> {
  readonly atMs: number;
  readonly priority = PRIORITY.requestArrives;
  readonly #arrival: Arrival;
  /** Whether the next request that comes by itself is to be announced after this one. */
  readonly #byItself: boolean;

  constructor(arrival: Arrival, byItself: boolean) {
    this.atMs = arrival.atMs;
    this.#arrival = arrival;
    this.#byItself = byItself;
  }

  handle(world: World): readonly SimEvent<World>[] {
    const flight = world.takeOff(this.#arrival);
    flight.router.submit(flight, world.nowMs);
    const consequences = flight.router.carryOut(world);
    return this.#byItself ? [...consequences, ...world.nextArrival()] : consequences;
  }
}
