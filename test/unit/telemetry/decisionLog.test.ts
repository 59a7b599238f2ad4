import assert from "node:assert/strict";
import { test } from "node:test";
import { conditionReport } from "#src/telemetry/conditionReport.ts";
import { DecisionLog } from "#src/telemetry/decisionLog.ts";

function decision(id: number, request: number) {
  return { id: `d-${id}`, requestId: `r-${request}` };
}

test("a decision is found by its id and by its request, each attempt of it", () => {
  const log = new DecisionLog(10);
  log.add(decision(1, 1));
  log.add(decision(2, 2));
  log.add(decision(3, 1));
  assert.equal(log.byDecision("d-2")?.requestId, "r-2");
  assert.equal(log.byDecision("d-9"), null);
  assert.deepEqual(
    log.byRequest("r-1").map(({ id }) => id),
    ["d-1", "d-3"],
  );
  assert.deepEqual(
    log.recent(2).map(({ id }) => id),
    ["d-3", "d-2"],
  );
});

test("the oldest make place, and nothing of them is kept", () => {
  const log = new DecisionLog(100);
  for (let at = 0; at < 10_000; at++) log.add(decision(at, Math.floor(at / 2)));
  assert.equal(log.size, 100);
  assert.equal(log.byDecision("d-9899"), null);
  assert.ok(log.byDecision("d-9900"));
  assert.deepEqual(log.byRequest("r-0"), []);
  assert.equal(log.recent(1_000).length, 100);
  log.add(decision(10_000, 5_000));
  assert.deepEqual(
    log.byRequest("r-4950").map(({ id }) => id),
    ["d-9901"],
  );
});

test("a log of no size keeps nothing", () => {
  const log = new DecisionLog(0);
  log.add(decision(1, 1));
  assert.equal(log.size, 0);
});

test("conditions are reported the oldest first, with their age", () => {
  const raised = [
    { key: "metrics_stale", replicaId: "a:1", sinceMs: 5_000, message: "No metrics.", mend: "Enable them." },
    { key: "index_approximate", replicaId: null, sinceMs: 1_000, message: "No events.", mend: "Publish them." },
  ];
  assert.deepEqual(conditionReport(raised, 6_500), [
    { condition: "index_approximate", replica: null, forSeconds: 5.5, message: "No events.", mend: "Publish them." },
    { condition: "metrics_stale", replica: "a:1", forSeconds: 1.5, message: "No metrics.", mend: "Enable them." },
  ]);
});
