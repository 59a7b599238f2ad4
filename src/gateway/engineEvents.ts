import type { MonitorListener } from "#src/engines/monitorListener.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import { monitored } from "#src/fleet/monitored.ts";
import type { RequestLog } from "#src/telemetry/requestLog.ts";

/** Takes what the monitor sees to the fleet, and what an operator must hear of it into the log and the conditions. */
export function engineEvents(fleet: Fleet, log: RequestLog): MonitorListener {
  const toFleet = monitored(fleet);
  return {
    ...toFleet,
    identified(endpoint, profile, nowMs) {
      const { kind, version, dataParallelRanks } = profile;
      const models = profile.models.map(({ id }) => id);
      log.event("info", "engine identified", { engine: endpoint.name, kind, version, dataParallelRanks, models });
      for (const { id } of fleet.ofEndpoint(endpoint.name)) fleet.conditions.clear("engine_unidentified", id);
      toFleet.identified(endpoint, profile, nowMs);
    },
    unidentified(endpoint, why, nowMs) {
      const news = fleet
        .ofEndpoint(endpoint.name)
        .filter(({ id }) => fleet.conditions.raise("engine_unidentified", id, `${id}: ${why}`, nowMs));
      if (news.length > 0) log.event("warn", "engine not identified", { engine: endpoint.name, why });
      toFleet.unidentified(endpoint, why, nowMs);
    },
    scrapeFailed(endpoint, cause, nowMs) {
      log.event("debug", "scrape failed", { engine: endpoint.name, cause: cause.message });
      toFleet.scrapeFailed(endpoint, cause, nowMs);
    },
    missing(endpoint, facts, nowMs) {
      if (facts.length === 0) log.event("info", "engine publishes all facts", { engine: endpoint.name });
      else log.event("warn", "engine does not publish what it should", { engine: endpoint.name, facts });
      toFleet.missing(endpoint, facts, nowMs);
    },
    restarted(endpoint, nowMs) {
      log.event("warn", "engine restarted", { engine: endpoint.name });
      toFleet.restarted(endpoint, nowMs);
    },
  };
}

/** Log lines of what changes in the fleet. */
export function logFleetChanges(fleet: Fleet, log: RequestLog): void {
  fleet.onChange(({ kind, replica }) => {
    if (kind === "added" || kind === "removed") log.event("info", `replica ${kind}`, { replica: replica.id });
    if (kind !== "lifecycle") return;
    const { state } = replica.lifecycle;
    const level = state === "quarantined" || state === "unreachable" ? "warn" : "info";
    const cause = "cause" in replica.lifecycle ? { cause: replica.lifecycle.cause } : {};
    log.event(level, "replica changed state", { replica: replica.id, state, ...cause });
  });
}
