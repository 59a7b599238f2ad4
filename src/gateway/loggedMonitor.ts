import type { MonitorListener } from "#src/engines/monitorListener.ts";
import type { RequestLog } from "#src/telemetry/requestLog.ts";

/** Writes what an operator must hear of engines into the log, on its way to the fleet. */
export function loggedMonitor(to: MonitorListener, log: RequestLog): MonitorListener {
  return {
    ...to,
    identified(endpoint, profile, nowMs) {
      const { kind, version, dataParallelRanks } = profile;
      const models = profile.models.map(({ id }) => id);
      log.event("info", "engine identified", { engine: endpoint.name, kind, version, dataParallelRanks, models });
      to.identified(endpoint, profile, nowMs);
    },
    unidentified(endpoint, why, nowMs) {
      log.event("debug", "engine not identified", { engine: endpoint.name, why });
      to.unidentified(endpoint, why, nowMs);
    },
    scrapeFailed(endpoint, cause, nowMs) {
      log.event("debug", "scrape failed", { engine: endpoint.name, cause: cause.message });
      to.scrapeFailed(endpoint, cause, nowMs);
    },
    missing(endpoint, facts, nowMs) {
      if (facts.length === 0) log.event("info", "engine publishes all facts", { engine: endpoint.name });
      else log.event("warn", "engine does not publish what it should", { engine: endpoint.name, facts });
      to.missing(endpoint, facts, nowMs);
    },
    restarted(endpoint, nowMs) {
      log.event("warn", "engine restarted", { engine: endpoint.name });
      to.restarted(endpoint, nowMs);
    },
  };
}
