import { NOTHING } from "../kernel/simEvent.ts";
import type { SimEvent } from "../kernel/simEvent.ts";
import { randomFor } from "../workload/seeds.ts";
import type { ModelledEngine } from "../world/modelledEngine.ts";
import type { ModelledRouter } from "../world/modelledRouter.ts";
import type { World } from "../world/world.ts";
import { NewsArrives } from "./newsArrives.ts";
import { PRIORITY } from "./priorities.ts";
import { Recurring } from "./recurring.ts";

/** As the gateway's timer. */
const FLEET_TICK_MS = 1_000;

/** What routers do by the clock: probe and scrape every engine, each pair at its own phase, and age what they know. */
export function watching(world: World): readonly SimEvent<World>[] {
  const { monitor, seed } = world.settings;
  const phases = randomFor(seed, "phases");
  return world.routers.flatMap((router) => [
    new Recurring(FLEET_TICK_MS, FLEET_TICK_MS, PRIORITY.news, ({ nowMs }) => {
      router.fleet.tick(nowMs);
      return NOTHING;
    }),
    ...world.engines.flatMap((engine) => [
      new Recurring(0, monitor.healthEveryMs, PRIORITY.news, ({ nowMs }) => {
        router.probed(engine, nowMs);
        return NOTHING;
      }),
      new Recurring(phases.next() * monitor.scrapeEveryMs, monitor.scrapeEveryMs, PRIORITY.news, (world) =>
        scrape(router, engine, world),
      ),
    ]),
  ]);
}

function scrape(router: ModelledRouter, engine: ModelledEngine, world: World): readonly SimEvent<World>[] {
  const { scrapeDelayMs, scrapeLossShare } = world.settings.monitor;
  const lost = scrapeLossShare > 0 && world.losses.next() < scrapeLossShare;
  if (lost || engine.state !== "up") return NOTHING;
  const { name, incarnation } = engine;
  const metrics = engine.metrics();
  const take = ({ nowMs }: World): void => {
    if (incarnation !== engine.incarnation) return;
    router.meet(engine, nowMs);
    router.fleet.applyScrape(name, { byRank: new Map([[0, metrics]]), missing: [] }, nowMs);
  };
  if (scrapeDelayMs > 0) return [new NewsArrives(world.nowMs + scrapeDelayMs, take)];
  take(world);
  return NOTHING;
}
