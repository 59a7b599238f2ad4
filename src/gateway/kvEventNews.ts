import type { Clock } from "#src/determinism/clock.ts";
import type { KvEventListener } from "#src/engines/events/kvEventListener.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import { kvEventsToFleet } from "#src/fleet/precise/kvEventsToFleet.ts";
import type { RequestLog } from "#src/telemetry/requestLog.ts";
import type { WarmStart } from "./warmStart.ts";

/** A replay tells of its progress with every slice; people want to read it this often. */
const PROGRESS_EVERY_MS = 1000;

/** Takes what engines tell of their KV blocks to the fleet, and what an operator must hear of it into the log. */
export function kvEventNews(fleet: Fleet, log: RequestLog, warmStart: WarmStart, clock: Clock): KvEventListener {
  const toFleet = kvEventsToFleet(fleet);
  let progressToldMs = clock.nowMs();
  return {
    batch: (endpoint, rank, batch, nowMs) => toFleet.batch(endpoint, rank, batch, nowMs),
    lost(endpoint, rank, why, nowMs) {
      const level = why === "rebuild" ? "info" : "warn";
      log.event(level, "what was known of an engine's KV blocks is void", { engine: endpoint.name, rank, why });
      toFleet.lost(endpoint, rank, why, nowMs);
    },
    restarted(endpoint, rank, nowMs) {
      log.event("warn", "engine restarted, by its KV events", { engine: endpoint.name, rank });
      toFleet.restarted(endpoint, rank, nowMs);
    },
    progress(endpoint, rank, progress, nowMs) {
      toFleet.progress(endpoint, rank, progress, nowMs);
      if (nowMs - progressToldMs < PROGRESS_EVERY_MS) return;
      progressToldMs = nowMs;
      log.event("info", "KV events are being replayed", { engine: endpoint.name, rank, ...progress });
    },
    live(endpoint, rank, history, nowMs) {
      toFleet.live(endpoint, rank, history, nowMs);
      const [replica] = fleet.ofEndpoint(endpoint.name).filter((one) => (one.rank ?? 0) === rank);
      const view = replica && fleet.index.view(replica.index);
      const known = { state: view?.state.state, blocks: view?.holders, batches: view?.counts.batches };
      log.event("info", "KV events are up to date", { engine: endpoint.name, rank, ...history, ...known });
      warmStart.settled(endpoint.name, rank);
    },
    failed(endpoint, rank, why, nowMs) {
      log.event("warn", "KV events do not come", { engine: endpoint.name, rank, why });
      toFleet.failed(endpoint, rank, why, nowMs);
      warmStart.failed(endpoint.name, rank);
    },
  };
}
