import { incidents } from "./events/incidents.ts";
import { sampling } from "./events/sampling.ts";
import { watching } from "./events/watch.ts";
import { EventQueue } from "./kernel/eventQueue.ts";
import { runEvents } from "./kernel/runEvents.ts";
import type { Workload } from "./workload/arrival.ts";
import { audit } from "./world/audit.ts";
import type { Flight } from "./world/flight.ts";
import type { RunSettings } from "./world/runSettings.ts";
import { World } from "./world/world.ts";

export interface RunHooks {
  /** Called now and then. */
  readonly onProgress?: (world: World) => void;
  readonly onArrival?: (flight: Flight) => void;
}

/** A run that has ended. */
export interface Run {
  readonly world: World;
  readonly events: number;
}

/** Runs a workload to its end. Throws if anything was lost, ended twice or is still counted somewhere. */
export function run(settings: RunSettings, workload: Workload, hooks: RunHooks = {}): Run {
  const world = new World(settings, workload, hooks.onArrival);
  const queue = new EventQueue<World>();
  for (const first of [...incidents(world), ...watching(world), sampling(world), ...world.nextArrival()])
    queue.push(first);
  const events = runEvents(world, queue, () => hooks.onProgress?.(world));
  const faults = audit(world);
  if (faults.length > 0) throw new Error(`the simulation is inconsistent: ${faults.join("; ")}`);
  return { world, events };
}
