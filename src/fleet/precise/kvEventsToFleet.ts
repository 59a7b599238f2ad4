import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { KvEventListener } from "#src/engines/events/kvEventListener.ts";
import type { Fleet } from "../fleet.ts";
import type { PreciseView } from "./preciseView.ts";

/** Carries what the event streams tell into the fleet. News of replicas that are gone is ignored. */
export function kvEventsToFleet(fleet: Fleet): KvEventListener {
  const tell = (endpoint: EngineEndpoint, rank: number, nowMs: number, what: (view: PreciseView) => void): void => {
    const replica = fleet.ofEndpoint(endpoint.name).find((one) => (one.rank ?? 0) === rank);
    if (replica === undefined) return;
    const view = fleet.index.view(replica.index);
    const before = view.state;
    what(view);
    if (view.state !== before) fleet.viewChanged(replica, nowMs);
  };
  return {
    batch: (endpoint, rank, batch, nowMs) => tell(endpoint, rank, nowMs, (view) => view.apply(batch, nowMs)),
    lost: (endpoint, rank, why, nowMs) => tell(endpoint, rank, nowMs, (view) => view.lost(why !== "rebuild", nowMs)),
    restarted: (endpoint, rank, nowMs) => tell(endpoint, rank, nowMs, (view) => view.restarted(nowMs)),
    // Counted by the view itself, batch by batch; a tick of the fleet brings it into the conditions.
    progress: () => undefined,
    live: (endpoint, rank, { complete }, nowMs) =>
      tell(endpoint, rank, nowMs, (view) => view.upToDate(complete, nowMs)),
    failed: (endpoint, rank, why, nowMs) => tell(endpoint, rank, nowMs, (view) => view.interrupted(why, nowMs)),
  };
}
