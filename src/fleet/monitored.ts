import type { MonitorListener } from "#src/engines/monitorListener.ts";
import type { Fleet } from "./fleet.ts";

/** Carries what the monitor sees into the fleet. */
export function monitored(fleet: Fleet): MonitorListener {
  return {
    identified: ({ name }, profile, nowMs) => fleet.applyProfile(name, profile, nowMs),
    // The replica stays as it was: the health report that comes with it says whether that is a change.
    unidentified: () => undefined,
    health: ({ name }, health, nowMs) => fleet.applyHealth(name, health, nowMs),
    metrics: ({ name }, scrape, nowMs) => fleet.applyScrape(name, scrape, nowMs),
    // Metrics age by themselves, and `tick` says so.
    scrapeFailed: () => undefined,
    models: ({ name }, models, nowMs) => fleet.applyModels(name, models, nowMs),
    modelsFailed: () => undefined,
    // Each scrape brings the same list.
    missing: () => undefined,
    restarted: ({ name }, nowMs) => fleet.endpointRestarted(name, nowMs),
  };
}
