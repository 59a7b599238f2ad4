import { NOTHING } from "../kernel/simEvent.ts";
import type { World } from "../world/world.ts";
import { PRIORITY } from "./priorities.ts";
import { Recurring } from "./recurring.ts";

/** Looks at all engines and queues every so often. */
export function sampling({ settings }: World): Recurring {
  return new Recurring(settings.sampleEveryMs, settings.sampleEveryMs, PRIORITY.sample, (world) => {
    const { samples, engines, routers } = world;
    samples.atMs.push(world.nowMs);
    for (const { flights, core } of engines) {
      samples.requests.push(flights.size);
      samples.kvUsage.push(core.kvUsage);
    }
    samples.waiting.push(routers.reduce((sum, { scheduler }) => sum + scheduler.depth.requests, 0));
    return NOTHING;
  });
}
