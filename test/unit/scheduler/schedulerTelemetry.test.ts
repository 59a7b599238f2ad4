import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#src/routing/decision.ts";
import { observeInto, replicaSnapshots, telemetrySources } from "#src/scheduler/schedulerTelemetry.ts";
import { DecisionLog } from "#src/telemetry/decisionLog.ts";
import { Metrics } from "#src/telemetry/metrics.ts";
import { FAILED, answered, endpoint, made, readyFleet, request, submit } from "./harness.ts";

test("what the scheduler does shows in metrics and decision log", async () => {
  const fleet = readyFleet(2, 1);
  let nowMs = 0;
  const metrics = new Metrics(
    telemetrySources(
      () => fleet,
      () => scheduler,
      () => nowMs,
    ),
  );
  const decisions = new DecisionLog<Decision>();
  const { scheduler } = made(fleet, { limits: { maxRequests: 1 }, observer: observeInto(metrics, decisions) });
  try {
    const unhashable = { ...request().identity, unhashable: "no_prompt" as const };
    const first = submit(scheduler, 0, { identity: unhashable });
    scheduler.finish(first.placement!, FAILED, 1);
    const retry = submit(scheduler, 1, first.request, { attempt: 2, excluded: new Set([first.placement!.replica.id]) });
    submit(scheduler, 1);
    submit(scheduler, 1, { className: "batch" });
    submit(scheduler, 1);
    nowMs = 2;

    const text = await metrics.render();
    const shows = (line: string) => assert.ok(text.split("\n").includes(line), `${line} is missing in\n${text}`);
    shows('kvasir_unhashable_total{reason="no_prompt"} 1');
    shows('kvasir_admission_rejections_total{code="displaced"} 1');
    shows('kvasir_requests_shed_total{model="llama",class="batch",code="displaced"} 1');
    shows('kvasir_queue_requests{model="llama",class="standard"} 1');
    shows('kvasir_queue_longest_wait_seconds{model="llama",class="standard"} 0.001');
    shows("kvasir_queue_bytes 100");
    shows("kvasir_requests_in_flight 2");
    shows(`kvasir_replica_attempts_total{replica="${first.placement!.replica.id}",outcome="failed"} 1`);
    shows('kvasir_replica_requests_reserved{replica="r0"} 1');
    shows('kvasir_request_queue_time_seconds_count{model="llama",class="standard"} 3');
    assert.match(text, /^kvasir_decisions_total\{policy="least-connections",branch="\w+"\} \d/m);
    assert.equal(decisions.byRequest(first.request.id).length, 2);
    assert.equal(decisions.byDecision(retry.placement!.decision.id)?.attempt, 2);

    scheduler.finish(retry.placement!, answered({ promptTokens: 900, cachedTokens: 300, outputTokens: 40 }), 3);
    const after = await metrics.render();
    assert.match(after, /^kvasir_prompt_tokens_total\{model="llama"\} 900$/m);
    assert.match(after, /^kvasir_cached_tokens_reported_total\{model="llama"\} 300$/m);

    fleet.applyEndpoints("list", [endpoint("r1")], 4);
    assert.doesNotMatch(await metrics.render(), /r0/, "a removed replica has left a series");
  } finally {
    metrics.close();
  }
});

test("a replica that asked to be left alone is alive but not routable", () => {
  const { scheduler, fleet } = made(readyFleet(1, 4));
  scheduler.finish(submit(scheduler, 0).placement!, { kind: "busy", status: 429, retryAfterMs: 500 }, 10);
  const [held] = replicaSnapshots(fleet, 100);
  assert.deepEqual([held!.routable, held!.state], [false, "ready"]);
  assert.equal(replicaSnapshots(fleet, 600)[0]!.routable, true);
});
