import type { Fleet } from "#src/fleet/fleet.ts";
import { modelsWithoutServer } from "#src/fleet/roles.ts";
import type { WarmStart, WarmStartReport } from "./warmStart.ts";
import { conditionReport, type ReportedCondition } from "#src/telemetry/conditionReport.ts";

export interface Readiness {
  readonly ready: boolean;
  /** Why it is not ready. */
  readonly reasons: readonly string[];
  /** What is degraded, ready or not. */
  readonly conditions: readonly ReportedCondition[];
  readonly replicas: { readonly routable: number; readonly all: number };
  readonly warmStart: WarmStartReport;
}

/** Ready: not draining, at least one replica takes requests, and what the engines hold was learned. */
export function readinessOf(fleet: Fleet, warmStart: WarmStart, draining: boolean, nowMs: number): Readiness {
  const replicas = fleet.replicas();
  const routable = replicas.filter(({ health, profile }) => profile !== null && health.routable(nowMs)).length;
  const unserved = modelsWithoutServer(fleet);
  const reasons: string[] = [];
  if (draining) reasons.push("draining");
  if (replicas.length === 0) reasons.push("no engines are known");
  else if (routable === 0) reasons.push("no replica takes requests");
  else if (unserved.length === bases(fleet))
    reasons.push(`no replica has a role that serves by itself: ${unserved.join(", ")}`);
  const warm = warmStart.report();
  if (!warm.done && replicas.length > 0) reasons.push(warmingReason(warm, replicas.length));
  return {
    ready: reasons.length === 0,
    reasons,
    conditions: conditionReport(fleet.conditions.list(), nowMs),
    replicas: { routable, all: replicas.length },
    warmStart: warm,
  };
}

function bases(fleet: Fleet): number {
  return fleet.models().filter(({ parent }) => parent === null).length;
}

function warmingReason({ pending }: WarmStartReport, replicas: number): string {
  const batches = pending.reduce((sum, one) => sum + one.batches, 0);
  return `learning what ${pending.length} of ${replicas} replicas have cached (${batches} batches of events so far)`;
}
