import type { Fleet } from "#src/fleet/fleet.ts";
import { conditionReport, type ReportedCondition } from "#src/telemetry/conditionReport.ts";

export interface Readiness {
  readonly ready: boolean;
  /** Why it is not ready. */
  readonly reasons: readonly string[];
  /** What is degraded, ready or not. */
  readonly conditions: readonly ReportedCondition[];
  readonly replicas: { readonly routable: number; readonly all: number };
}

/** Ready: not draining, and at least one replica takes requests. */
export function readinessOf(fleet: Fleet, draining: boolean, nowMs: number): Readiness {
  const replicas = fleet.replicas();
  const routable = replicas.filter(({ health, profile }) => profile !== null && health.routable(nowMs)).length;
  const reasons: string[] = [];
  if (draining) reasons.push("draining");
  if (replicas.length === 0) reasons.push("no engines are known");
  else if (routable === 0) reasons.push("no replica takes requests");
  return {
    ready: reasons.length === 0,
    reasons,
    conditions: conditionReport(fleet.conditions.list(), nowMs),
    replicas: { routable, all: replicas.length },
  };
}
