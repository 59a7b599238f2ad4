import { NOTHING } from "../kernel/simEvent.ts";
import type { SimEvent } from "../kernel/simEvent.ts";
import type { World } from "../world/world.ts";

/** Something that happens every so often, until all is over. */
export class Recurring implements SimEvent<World> {
  atMs: number;
  readonly priority: number;
  readonly #everyMs: number;
  readonly #act: (world: World) => readonly SimEvent<World>[];

  constructor(firstMs: number, everyMs: number, priority: number, act: (world: World) => readonly SimEvent<World>[]) {
    this.atMs = firstMs;
    this.priority = priority;
    this.#everyMs = everyMs;
    this.#act = act;
  }

  handle(world: World): readonly SimEvent<World>[] {
    if (world.over) return NOTHING;
    const consequences = this.#act(world);
    this.atMs += this.#everyMs;
    return [this, ...consequences];
  }
}
