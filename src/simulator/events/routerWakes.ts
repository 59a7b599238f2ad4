import { NOTHING } from "../kernel/simEvent.ts";
import type { SimEvent } from "../kernel/simEvent.ts";
import type { ModelledRouter } from "../world/modelledRouter.ts";
import type { World } from "../world/world.ts";
import { PRIORITY } from "./priorities.ts";

/** The timer that a scheduler asked for is up. */
export class RouterWakes implements SimEvent<World> {
  readonly atMs: number;
  readonly priority = PRIORITY.routerWakes;
  readonly #router: ModelledRouter;

  constructor(router: ModelledRouter, atMs: number) {
    this.#router = router;
    this.atMs = atMs;
  }

  handle(world: World): readonly SimEvent<World>[] {
    if (!this.#router.woken(this)) return NOTHING;
    this.#router.scheduler.tick(world.nowMs);
    return this.#router.carryOut(world);
  }
}
