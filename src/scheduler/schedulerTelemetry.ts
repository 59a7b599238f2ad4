import type { Fleet } from "#src/fleet/fleet.ts";
import type { Decision } from "#src/routing/decision.ts";
import type { DecisionLog } from "#src/telemetry/decisionLog.ts";
import type { Metrics } from "#src/telemetry/metrics.ts";
import type { ReplicaSnapshot, TelemetrySources } from "#src/telemetry/snapshots.ts";
import type { Scheduler } from "./scheduler.ts";
import type { SchedulerObserver } from "./schedulerObserver.ts";

/** Refusals for which there is no reason but the load. */
const SHED: ReadonlySet<string> = new Set(["queue_full", "queue_timeout", "displaced", "too_late"]);

/** Puts what the scheduler does into metrics and the decision log. */
export function observeInto(metrics: Metrics, decisions: DecisionLog<Decision>): SchedulerObserver {
  return {
    bound({ decision, request, waitedMs }) {
      decisions.add(decision);
      metrics.decisions.with(decision.policy, decision.branch).add();
      metrics.model(request.model).queued(request.className, waitedMs);
      if (decision.attempt === 1 && request.identity.unhashable !== null)
        metrics.unhashable.with(request.identity.unhashable).add();
    },
    queued: () => undefined,
    refused(request, { code }) {
      metrics.admissionRejections.with(code).add();
      if (request !== null && SHED.has(code)) metrics.model(request.model).shed(request.className, code);
    },
    finished({ request, replica, reservation, cachedTokensPredicted, prefill }, outcome) {
      metrics.replicaAttempts.with(replica.id, outcome.kind).add();
      if (outcome.kind !== "answered" || outcome.status >= 300) return;
      const { promptTokens, outputTokens } = outcome.usage;
      // A decode side counts as cached what it was handed; the prefill side knows what was.
      const computed = prefill ?? { replica, usage: outcome.usage };
      const cachedTokens = computed.usage?.cachedTokens ?? null;
      const model = metrics.model(request.model);
      model.tokens(promptTokens, outputTokens ?? (reservation.outputTokens > 0 ? reservation.outputTokens : null));
      model.cachedTokens(cachedTokensPredicted, cachedTokens);
      if (cachedTokens === null) return;
      metrics.replicaCachedPredicted.with(computed.replica.id).add(cachedTokensPredicted);
      metrics.replicaCachedReported.with(computed.replica.id).add(cachedTokens);
      metrics.replicaCachedError.with(computed.replica.id).add(Math.abs(cachedTokensPredicted - cachedTokens));
    },
  };
}

/** What a scrape shows of fleet and queue. They are asked for each time: a router makes its metrics before its fleet. */
export function telemetrySources(
  fleet: () => Fleet,
  scheduler: () => Scheduler,
  nowMs: () => number,
): Omit<TelemetrySources, "logLinesDropped" | "kvStreams"> {
  return {
    replicas: () => replicaSnapshots(fleet(), nowMs()),
    conditions: () => fleet().conditions.list(),
    waiting: () => scheduler().waiting(nowMs()),
    queueBytes: () => scheduler().depth.bytes,
    requestsInFlight: () => scheduler().inFlight,
  };
}

export function replicaSnapshots(fleet: Fleet, nowMs: number): ReplicaSnapshot[] {
  return fleet.replicas().map((replica) => {
    const { id, profile, metrics, load, latency, health } = replica;
    return {
      replica: id,
      engine: profile?.kind ?? null,
      runningRequests: metrics?.value.runningRequests ?? null,
      waitingRequests: metrics?.value.waitingRequests ?? null,
      reservedRequests: load.requests,
      maxRunningRequests: replica.limits().maxRunningRequests,
      kvUsage: metrics?.value.kvUsage ?? null,
      pendingPrefillTokens: load.pendingPrefillTokens,
      routable: health.routable(nowMs) && !health.held(nowMs),
      state: health.lifecycle.state,
      prefillMape: latency.prefillMape,
      stepMape: latency.stepMape,
      metricsAgeMs: metrics === null ? null : nowMs - metrics.atMs,
      indexedBlocks: fleet.index.heldBy(replica.index),
      viewState: fleet.index.view(replica.index).state.state,
      cachePredictionAgreement: replica.cachePrediction.agreement,
    };
  });
}
