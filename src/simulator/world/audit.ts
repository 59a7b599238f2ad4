import type { World } from "./world.ts";

/** What should not be, once all is over: lost requests, load that nobody causes. Empty: all is well. */
export function audit(world: World): readonly string[] {
  const faults: string[] = [];
  const open = world.records.filter(({ ending }) => ending === null).length;
  if (open > 0) faults.push(`${open} of ${world.records.length} requests never ended`);
  for (const { index, scheduler, fleet } of world.routers) {
    if (scheduler.depth.requests > 0) faults.push(`${scheduler.depth.requests} requests wait in router ${index}`);
    if (scheduler.inFlight > 0) faults.push(`router ${index} knows ${scheduler.inFlight} placements`);
    if (fleet.ledger.size > 0) faults.push(`the ledger of router ${index} holds ${fleet.ledger.size} reservations`);
    for (const { id, load } of fleet.replicas()) {
      const left = [
        load.requests,
        load.sequences,
        load.decodeKvTokens,
        load.pendingPrefillTokens,
        load.pendingPrefillMs,
        load.reservedKvTokens,
        load.remainingOutputTokens,
      ];
      if (left.some((count) => count !== 0)) faults.push(`router ${index} counts ${left.join(", ")} on ${id}`);
    }
  }
  for (const { name, core, flights } of world.engines)
    if (core.hasWork || flights.size > 0 || core.kvUsage > 0) faults.push(`${name} is not empty`);
  return faults;
}
