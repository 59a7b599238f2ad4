import { Gauge } from "prom-client";
import type { Registry } from "prom-client";
import type { ReplicaSnapshot, TelemetrySources } from "./snapshots.ts";

/** Makes a gauge that is filled anew at every scrape; what is not set then has no series. */
export function scrapedGauge<Label extends string>(
  registry: Registry,
  described: { readonly name: string; readonly help: string; readonly labels?: readonly Label[] },
  fill: (set: (labels: Partial<Record<Label, string>>, value: number) => void) => void,
): void {
  const gauge = new Gauge<Label>({
    name: described.name,
    help: described.help,
    labelNames: [...(described.labels ?? [])],
    registers: [registry],
    collect() {
      this.reset();
      fill((labels, value) => this.set(labels, value));
    },
  });
  void gauge;
}

const REPLICA_GAUGES: readonly {
  readonly name: string;
  readonly help: string;
  readonly read: (snapshot: ReplicaSnapshot) => number | null;
}[] = [
  {
    name: "kvasir_replica_requests_running",
    help: "Requests running, as the engine says.",
    read: (one) => one.runningRequests,
  },
  {
    name: "kvasir_replica_requests_waiting",
    help: "Requests waiting in the engine, as it says.",
    read: (one) => one.waitingRequests,
  },
  {
    name: "kvasir_replica_requests_reserved",
    help: "Requests that this router has placed there and that have not ended.",
    read: (one) => one.reservedRequests,
  },
  {
    name: "kvasir_replica_max_running_requests",
    help: "Batch slots.",
    read: (one) => one.maxRunningRequests,
  },
  {
    name: "kvasir_replica_kv_cache_usage_ratio",
    help: "Share of KV memory in use, 0 to 1.",
    read: (one) => one.kvUsage,
  },
  {
    name: "kvasir_replica_pending_prefill_tokens",
    help: "Prompt tokens placed there and not computed yet.",
    read: (one) => one.pendingPrefillTokens,
  },
  {
    name: "kvasir_replica_routable",
    help: "1 if a request may go there now, else 0.",
    read: (one) => (one.routable ? 1 : 0),
  },
  {
    name: "kvasir_replica_prefill_mape_ratio",
    help: "Mean absolute error of predicted prompt times, as a share.",
    read: (one) => one.prefillMape,
  },
  {
    name: "kvasir_replica_step_mape_ratio",
    help: "Mean absolute error of predicted step times, as a share.",
    read: (one) => one.stepMape,
  },
  {
    name: "kvasir_replica_metrics_age_seconds",
    help: "Age of the engine's last metrics.",
    read: (one) => (one.metricsAgeMs === null ? null : one.metricsAgeMs / 1000),
  },
  {
    name: "kvasir_replica_indexed_blocks",
    help: "Prompt blocks that the prefix index thinks are cached there.",
    read: (one) => one.indexedBlocks,
  },
  {
    name: "kvasir_replica_cache_prediction_agreement_ratio",
    help: "Of the last hundred answers to prompts known by their tokens: share whose cached tokens were as predicted.",
    read: (one) => one.cachePredictionAgreement,
  },
];

export function addReplicaGauges(registry: Registry, sources: TelemetrySources): void {
  for (const { name, help, read } of REPLICA_GAUGES)
    scrapedGauge(registry, { name, help, labels: ["replica"] }, (set) => {
      for (const snapshot of sources.replicas()) {
        const value = read(snapshot);
        if (value !== null) set({ replica: snapshot.replica }, value);
      }
    });
  scrapedGauge(
    registry,
    {
      name: "kvasir_replica_state",
      help: "1 under the state a replica is in (quarantined and half_open: its breaker is open).",
      labels: ["replica", "engine", "state"],
    },
    (set) => {
      for (const { replica, engine, state } of sources.replicas())
        set({ replica, engine: engine ?? "unknown", state }, 1);
    },
  );
  scrapedGauge(
    registry,
    {
      name: "kvasir_replica_view_state",
      help: "1 under what KV events of a replica are worth: only `live` tells exactly what it has cached.",
      labels: ["replica", "state"],
    },
    (set) => {
      for (const { replica, viewState } of sources.replicas()) set({ replica, state: viewState }, 1);
    },
  );
}

export function addRouterGauges(registry: Registry, sources: TelemetrySources): void {
  scrapedGauge(
    registry,
    { name: "kvasir_queue_requests", help: "Requests waiting in the router.", labels: ["model", "class"] },
    (set) => {
      for (const { model, className, requests } of sources.waiting()) set({ model, class: className }, requests);
    },
  );
  scrapedGauge(
    registry,
    {
      name: "kvasir_queue_longest_wait_seconds",
      help: "How long the request that waits longest in the router has waited.",
      labels: ["model", "class"],
    },
    (set) => {
      for (const { model, className, longestMs } of sources.waiting())
        set({ model, class: className }, longestMs / 1000);
    },
  );
  scrapedGauge(
    registry,
    {
      name: "kvasir_queue_expected_wait_seconds",
      help: "Predicted wait of one more request.",
      labels: ["model", "class"],
    },
    (set) => {
      for (const { model, className, expectedMs } of sources.waiting())
        if (expectedMs !== null) set({ model, class: className }, expectedMs / 1000);
    },
  );
  scrapedGauge(registry, { name: "kvasir_queue_bytes", help: "Bodies of requests waiting in the router." }, (set) =>
    set({}, sources.queueBytes()),
  );
  scrapedGauge(registry, { name: "kvasir_requests_in_flight", help: "Requests placed and not ended." }, (set) =>
    set({}, sources.requestsInFlight()),
  );
  scrapedGauge(registry, { name: "kvasir_log_lines_dropped", help: "Log lines given up since the start." }, (set) =>
    set({}, sources.logLinesDropped()),
  );
  scrapedGauge(
    registry,
    { name: "kvasir_condition", help: "1 while something is degraded.", labels: ["condition", "replica"] },
    (set) => {
      for (const { key, replicaId } of sources.conditions()) set({ condition: key, replica: replicaId ?? "" }, 1);
    },
  );
}
