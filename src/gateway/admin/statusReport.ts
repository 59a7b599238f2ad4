import type { Fleet } from "#src/fleet/fleet.ts";
import type { Decision } from "#src/routing/decision.ts";
import type { Scheduler } from "#src/scheduler/scheduler.ts";
import { replicaSnapshots } from "#src/scheduler/schedulerTelemetry.ts";
import type { Totals } from "#src/telemetry/totals.ts";
import type { Readiness } from "../readiness.ts";

export interface StatusSources {
  readonly fleet: Fleet;
  readonly scheduler: Scheduler;
  readonly decisions: readonly Decision[];
  readonly readiness: Readiness;
  readonly totals: Totals;
  readonly policy: string;
  readonly version: string;
  readonly upSeconds: number;
  readonly nowMs: number;
}

/** What the status page shows, in one small answer. */
export function statusReport(from: StatusSources): Record<string, unknown> {
  const { fleet, scheduler, readiness, nowMs } = from;
  return {
    version: from.version,
    upSeconds: Math.round(from.upSeconds),
    ...readiness,
    replicas: replicaReports(fleet, nowMs),
    models: fleet.models().map(({ id, parent }) => ({ id, parent, replicas: fleet.pool(parent ?? id).length })),
    policy: from.policy,
    totals: from.totals,
    queue: scheduler.depth,
    inFlight: scheduler.inFlight,
    decisions: from.decisions.map((decision) => decisionLine(decision, nowMs)),
  };
}

/** Everything about each replica that an operator may want to see. */
export function replicaReports(fleet: Fleet, nowMs: number): Record<string, unknown>[] {
  const snapshots = replicaSnapshots(fleet, nowMs);
  return fleet.replicas().map((replica, at) => {
    const { endpoint, rank, incarnation, profile, latency, labels, lifecycle } = replica;
    return {
      ...snapshots[at],
      url: endpoint.url,
      rank,
      incarnation,
      role: endpoint.role,
      labels,
      version: profile?.version ?? null,
      models: profile?.models.map(({ id }) => id) ?? [],
      stateForMs: Math.round(nowMs - lifecycle.sinceMs),
      limits: replica.limits(),
      speed: {
        basis: latency.basis,
        prefillTokensPerSecond: 1e6 / latency.prefillMs(1000, 0),
        prefillSlowness: latency.prefillMape === null ? null : latency.prefillSlowness,
        stepMs: latency.stepMs(1, 1000),
        stepSlowness: latency.stepMape === null ? null : latency.stepSlowness,
      },
    };
  });
}

function decisionLine(decision: Decision, nowMs: number): Record<string, unknown> {
  const { chosen, runnerUp } = decision;
  const totalMs = decision.totalMs(chosen);
  return {
    id: decision.id,
    requestId: decision.requestId,
    model: decision.model,
    policy: decision.policy,
    branch: decision.branch,
    replica: decision.replicaId,
    attempt: decision.attempt,
    promptTokens: decision.promptTokens,
    cachedTokens: decision.cachedTokens(chosen),
    totalMs: Number.isFinite(totalMs) ? totalMs : null,
    runnerUp: runnerUp === null ? null : decision.replicaIds[runnerUp],
    ageMs: Math.round(nowMs - decision.atMs),
  };
}
