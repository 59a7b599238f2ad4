import type { KvEventBatch } from "#src/engines/events/kvEvent.ts";
import { NOTHING } from "../kernel/simEvent.ts";
import type { SimEvent } from "../kernel/simEvent.ts";
import type { ModelledEngine } from "../world/modelledEngine.ts";
import type { ModelledRouter } from "../world/modelledRouter.ts";
import type { EventSetup } from "../world/runSettings.ts";
import type { World } from "../world/world.ts";
import { NewsArrives } from "./newsArrives.ts";

/** What the step that has ended did to the engine's cache, on its way to every router. */
export function publishCacheEvents(engine: ModelledEngine, world: World): readonly SimEvent<World>[] {
  const { events } = world.settings;
  if (events === null) return NOTHING;
  const batch = engine.takeEvents(world.nowMs);
  if (batch === null) return NOTHING;
  const { incarnation } = engine;
  return world.routers.flatMap((router): readonly SimEvent<World>[] => {
    const arrivesMs = arrival(router, engine, events, world);
    if (arrivesMs <= world.nowMs) {
      take(router, engine, incarnation, batch, world.nowMs);
      return NOTHING;
    }
    return [new NewsArrives(arrivesMs, ({ nowMs }) => take(router, engine, incarnation, batch, nowMs))];
  });
}

/** Streams keep their order: a batch that has to be asked for again holds up those behind it. */
function arrival(router: ModelledRouter, engine: ModelledEngine, events: EventSetup, world: World): number {
  const lost = events.lossShare > 0 && world.losses.next() < events.lossShare;
  const soonestMs = world.nowMs + events.delayMs + (lost ? events.replayMs : 0);
  const arrivesMs = Math.max(soonestMs, router.eventsUntilMs[engine.index]!);
  router.eventsUntilMs[engine.index] = arrivesMs;
  return arrivesMs;
}

/** Events of a process that has died meanwhile are void. */
function take(
  router: ModelledRouter,
  engine: ModelledEngine,
  incarnation: number,
  batch: KvEventBatch,
  nowMs: number,
): void {
  if (incarnation !== engine.incarnation) return;
  router.meet(engine, nowMs);
  router.events.batch(router.fleet.ofEndpoint(engine.name)[0]!.endpoint, 0, batch, nowMs);
}
