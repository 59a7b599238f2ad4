import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { Registry } from "prom-client";
import { CounterFamily } from "#src/telemetry/counterFamily.ts";
import { HistogramFamily } from "#src/telemetry/histogramFamily.ts";
import { Metrics } from "#src/telemetry/metrics.ts";
import type { ReplicaSnapshot, TelemetrySources } from "#src/telemetry/snapshots.ts";

const open: Metrics[] = [];

function metricsWith(sources: Partial<TelemetrySources> = {}): Metrics {
  const metrics = new Metrics(sources);
  open.push(metrics);
  return metrics;
}

afterEach(() => {
  for (const metrics of open.splice(0)) metrics.close();
});

/** The value of one line of the exposition; null: there is no such series. */
function valueOf(text: string, series: string): number | null {
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? null : Number(line.slice(series.length + 1));
}

function replica(name: string, over: Partial<ReplicaSnapshot> = {}): ReplicaSnapshot {
  return {
    replica: name,
    engine: "vllm",
    runningRequests: 3,
    waitingRequests: 1,
    reservedRequests: 2,
    maxRunningRequests: 256,
    kvUsage: 0.25,
    pendingPrefillTokens: 1_200,
    routable: true,
    state: "ready",
    prefillMape: 0.1,
    stepMape: null,
    metricsAgeMs: 500,
    indexedBlocks: 40,
    viewState: "live",
    cachePredictionAgreement: null,
    ...over,
  };
}

describe("families", () => {
  test("a histogram counts each value in every bucket it does not exceed, in the shown unit", async () => {
    const registry = new Registry();
    const family = new HistogramFamily(registry, {
      name: "wait_seconds",
      help: "Wait.",
      labels: ["model"],
      bounds: [0.01, 0.1, 1],
      shownPerObserved: 1 / 1000,
    });
    const series = family.with("m");
    for (const ms of [5, 10, 11, 100, 5_000]) series.observe(ms);
    const text = await registry.metrics();
    const buckets = ["0.01", "0.1", "1", "+Inf"].map((le) =>
      valueOf(text, `wait_seconds_bucket{model="m",le="${le}"}`),
    );
    assert.deepEqual(buckets, [2, 4, 4, 5]);
    assert.equal(valueOf(text, 'wait_seconds_count{model="m"}'), 5);
    assert.equal(valueOf(text, 'wait_seconds_sum{model="m"}'), 5.126);
    assert.match(text, /^# TYPE wait_seconds histogram$/m);
  });

  test("label values are escaped", async () => {
    const registry = new Registry();
    new CounterFamily(registry, { name: "odd_total", help: "Odd.", labels: ["model"] }).with('a"b\\c\nd').add(2);
    assert.match(await registry.metrics(), /^odd_total\{model="a\\"b\\\\c\\nd"\} 2$/m);
  });

  test("past its bound a family folds new label sets into one", () => {
    const family = new CounterFamily(new Registry(), { name: "x_total", help: "X.", labels: ["a", "b"], maxSeries: 3 });
    for (let at = 0; at < 100; at++) family.with(String(at), "b").add();
    assert.equal(family.size, 4);
    assert.equal(family.with("other", "other").total, 97);
    family.with("0", "b").add();
    assert.equal(family.with("0", "b").total, 2);
  });
});

describe("models", () => {
  test("everything about a request shows under the fleet's model name", async () => {
    const metrics = metricsWith();
    const model = metrics.model("llama");
    assert.equal(metrics.model("llama"), model);
    model.timeToFirstToken.observe(120);
    model.interTokenLatency.observe(20);
    model.e2eLatency.observe(900);
    model.routerTime.observe(0.2);
    model.queued("batch", 0);
    model.request(200, null);
    model.request(200, null);
    model.request(502, "engine_unreachable");
    model.tokens(1_000, 50);
    model.tokens(null, null);
    model.cachedTokens(600, 640);
    model.cachedTokens(100, null);
    const text = await metrics.render();
    const expected: Record<string, number> = {
      'kvasir_time_to_first_token_seconds_bucket{model="llama",le="0.1"}': 0,
      'kvasir_time_to_first_token_seconds_bucket{model="llama",le="0.25"}': 1,
      'kvasir_inter_token_latency_seconds_bucket{model="llama",le="0.02"}': 1,
      'kvasir_e2e_request_latency_seconds_sum{model="llama"}': 0.9,
      'kvasir_router_time_seconds_bucket{model="llama",le="0.0002"}': 1,
      'kvasir_request_queue_time_seconds_count{model="llama",class="batch"}': 1,
      'kvasir_requests_total{model="llama",status="200",code=""}': 2,
      'kvasir_requests_total{model="llama",status="502",code="engine_unreachable"}': 1,
      'kvasir_prompt_tokens_total{model="llama"}': 1_000,
      'kvasir_request_prompt_tokens_count{model="llama"}': 1,
      'kvasir_generation_tokens_total{model="llama"}': 50,
      'kvasir_cached_tokens_predicted_total{model="llama"}': 700,
      'kvasir_cached_tokens_reported_total{model="llama"}': 640,
      'kvasir_cached_tokens_error_total{model="llama"}': 40,
    };
    const shown = Object.fromEntries(Object.keys(expected).map((series) => [series, valueOf(text, series)]));
    assert.deepEqual(shown, expected);
  });

  test("ten thousand names make no more than the bound of series", async () => {
    const metrics = metricsWith();
    for (let at = 0; at < 10_000; at++) metrics.model(`m${at}`).request(200, null);
    const text = await metrics.render();
    assert.equal(text.match(/^kvasir_requests_total\{/gm)?.length, 1_001);
    assert.equal(valueOf(text, 'kvasir_requests_total{model="other",status="200",code=""}'), 9_000);
  });
});

describe("replicas", () => {
  test("a removed one leaves no series behind (40)", async () => {
    let present = [replica("a:1"), replica("b:1")];
    const metrics = metricsWith({ replicas: () => present });
    metrics.replicaAttempts.with("a:1", "answered").add();
    metrics.replicaAttempts.with("b:1", "failed").add();
    assert.match(await metrics.render(), /replica="a:1"/);
    present = [replica("b:1")];
    const text = await metrics.render();
    assert.doesNotMatch(text, /a:1/);
    assert.equal(valueOf(text, 'kvasir_replica_attempts_total{replica="b:1",outcome="failed"}'), 1);
  });

  test("routability is shown, not liveness, and what is unknown is not zero", async () => {
    const metrics = metricsWith({
      replicas: () => [
        replica("a:1", {
          routable: false,
          state: "quarantined",
          kvUsage: null,
          runningRequests: null,
          metricsAgeMs: null,
        }),
      ],
    });
    const text = await metrics.render();
    assert.equal(valueOf(text, 'kvasir_replica_routable{replica="a:1"}'), 0);
    assert.equal(valueOf(text, 'kvasir_replica_state{replica="a:1",engine="vllm",state="quarantined"}'), 1);
    assert.equal(valueOf(text, 'kvasir_replica_requests_reserved{replica="a:1"}'), 2);
    for (const unknown of ["requests_running", "kv_cache_usage_ratio", "metrics_age_seconds", "step_mape_ratio"])
      assert.equal(valueOf(text, `kvasir_replica_${unknown}{replica="a:1"}`), null, unknown);
  });
});

describe("the router itself", () => {
  test("queue and conditions are read at the scrape", async () => {
    let raised = [{ key: "metrics_stale", replicaId: "a:1", sinceMs: 0, message: "old", mend: "" }];
    const metrics = metricsWith({
      waiting: () => [{ model: "llama", className: "batch", requests: 7, longestMs: 1_500, expectedMs: null }],
      queueBytes: () => 4_096,
      requestsInFlight: () => 12,
      conditions: () => raised,
    });
    const text = await metrics.render();
    assert.equal(valueOf(text, 'kvasir_queue_requests{model="llama",class="batch"}'), 7);
    assert.equal(valueOf(text, 'kvasir_queue_longest_wait_seconds{model="llama",class="batch"}'), 1.5);
    assert.equal(valueOf(text, 'kvasir_queue_expected_wait_seconds{model="llama",class="batch"}'), null);
    assert.equal(valueOf(text, "kvasir_queue_bytes"), 4_096);
    assert.equal(valueOf(text, "kvasir_requests_in_flight"), 12);
    assert.equal(valueOf(text, 'kvasir_condition{condition="metrics_stale",replica="a:1"}'), 1);
    raised = [];
    assert.doesNotMatch(await metrics.render(), /metrics_stale/);
  });

  test("two routers in one process do not share a registry", async () => {
    const [one, other] = [metricsWith(), metricsWith()];
    one.authFailures.with("unknown_key").add();
    assert.match(await one.render(), /kvasir_auth_failures_total\{reason="unknown_key"\} 1/);
    assert.doesNotMatch(await other.render(), /unknown_key/);
  });

  test("event loop delay, memory and CPU", async () => {
    const text = await metricsWith().render();
    assert.ok(valueOf(text, 'kvasir_event_loop_delay_seconds{quantile="0.99"}')! >= 0);
    assert.ok(valueOf(text, "kvasir_resident_memory_bytes")! > 1e6);
    assert.ok(valueOf(text, 'kvasir_cpu_seconds{mode="user"}')! > 0);
  });
});
