import { NOTHING } from "../kernel/simEvent.ts";
import type { SimEvent } from "../kernel/simEvent.ts";
import type { World } from "../world/world.ts";
import { PRIORITY } from "./priorities.ts";

/** What a router was told of an engine gets there. */
export class NewsArrives implements SimEvent<World> {
  readonly atMs: number;
  readonly priority = PRIORITY.news;
  readonly #take: (world: World) => void;

  constructor(atMs: number, take: (world: World) => void) {
    this.atMs = atMs;
    this.#take = take;
  }

  handle(world: World): readonly SimEvent<World>[] {
    this.#take(world);
    return NOTHING;
  }
}
