import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIFECYCLE_LIMITS } from "#src/fleet/lifecycle.ts";
import { base, endpoint, metrics, NOBODY_EXCLUDED, profile, readyFleet, request } from "./samples.ts";

function ids(replicas: readonly { readonly id: string }[]): readonly string[] {
  return replicas.map(({ id }) => id);
}

const ADAPTER = { id: "lora", parent: "m", maxModelTokens: null };

describe("eligibility", () => {
  it("names a reason for each replica of the pool that is left out", () => {
    const { fleet, clock, replica } = readyFleet(["a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1"]);
    const nowMs = clock.nowMs();
    for (let at = 0; at < LIFECYCLE_LIMITS.failuresToQuarantine; at++) replica("b:1").health.failed(nowMs);
    fleet.drain("c:1", nowMs);
    fleet.applyMetrics(replica("d:1"), metrics({ asleep: true }), nowMs);
    fleet.applyProfile("e:1", profile({ models: [base("m", 50)] }), nowMs);
    fleet.applyHealth("f:1", "unreachable", nowMs);
    const found = fleet.eligible(request({ promptTokens: 60 }), new Set(["g:1"]), nowMs);
    assert.deepEqual(ids(found.candidates), ["a:1"]);
    assert.equal(found.branch, "normal");
    assert.deepEqual(found.ineligible, [
      { replicaId: "b:1", reason: "quarantined" },
      { replicaId: "c:1", reason: "draining" },
      { replicaId: "d:1", reason: "asleep" },
      { replicaId: "e:1", reason: "context_too_long" },
      { replicaId: "f:1", reason: "unreachable" },
      { replicaId: "g:1", reason: "excluded" },
    ]);
  });

  it("lets the engine judge a length that is only estimated", () => {
    const { fleet, clock } = readyFleet(["a:1"], {}, { models: [base("m", 50)] });
    const long = request({ promptTokens: 60, approximate: true });
    assert.equal(fleet.eligible(long, NOBODY_EXCLUDED, clock.nowMs()).branch, "normal");
  });

  it("never gives up the last replica of a pool: it is tried as a last resort", () => {
    const { fleet, clock, replica } = readyFleet(["a:1", "b:1"]);
    fleet.applyProfile("b:1", profile({ models: [base("other")] }), clock.nowMs());
    for (let at = 0; at < LIFECYCLE_LIMITS.failuresToQuarantine; at++) replica("a:1").health.failed(clock.nowMs());
    const found = fleet.eligible(request(), NOBODY_EXCLUDED, clock.nowMs());
    assert.equal(found.branch, "last_resort");
    assert.deepEqual(ids(found.candidates), ["a:1"]);
    assert.deepEqual(found.ineligible, []);
    assert.equal(fleet.eligible(request(), new Set(["a:1"]), clock.nowMs()).branch, "none");
  });

  it("does not take what is loading, asleep or draining for a last resort", () => {
    const { fleet, clock } = readyFleet(["a:1", "b:1"]);
    fleet.applyHealth("a:1", "loading", clock.nowMs());
    fleet.drain("b:1", clock.nowMs());
    const found = fleet.eligible(request(), NOBODY_EXCLUDED, clock.nowMs());
    assert.equal(found.branch, "none");
    assert.equal(found.ineligible.length, 2);
  });

  it("sends an adapter where it is or can be loaded, and knows when nobody has it", () => {
    const { fleet, clock } = readyFleet(["a:1", "b:1"]);
    fleet.applyModels("b:1", [base("m"), ADAPTER], clock.nowMs());
    const wanted = request({ adapter: "lora" });
    assert.deepEqual(ids(fleet.eligible(wanted, NOBODY_EXCLUDED, clock.nowMs()).candidates), ["b:1"]);
    assert.equal(
      fleet.eligible(wanted, new Set(["a:1", "b:1"]), clock.nowMs()).branch,
      "none",
      "excluded, but not unknown",
    );
    fleet.applyHealth("b:1", "unreachable", clock.nowMs());
    assert.equal(fleet.eligible(wanted, NOBODY_EXCLUDED, clock.nowMs()).branch, "last_resort");
    const unknown = request({ adapter: "nobody" });
    assert.equal(fleet.eligible(unknown, new Set(["a:1"]), clock.nowMs()).branch, "unknown_model");
    assert.equal(fleet.eligible(request({ model: "x" }), NOBODY_EXCLUDED, clock.nowMs()).branch, "unknown_model");
  });

  it("gives whole requests to mixed replicas only", () => {
    const { fleet, clock } = readyFleet(["a:1", "b:1"]);
    fleet.applyEndpoints("list", [endpoint("a:1"), endpoint("b:1", { role: "prefill" })], clock.nowMs());
    const found = fleet.eligible(request(), NOBODY_EXCLUDED, clock.nowMs());
    assert.deepEqual(ids(found.candidates), ["a:1"]);
    assert.deepEqual(found.ineligible, [{ replicaId: "b:1", reason: "role" }]);
  });

  it("leaves a replica alone for a moment, also if it asks to be tried again at once", () => {
    const { clock, replica } = readyFleet(["a:1"]);
    const { health } = replica("a:1");
    health.busy({ retryAfterMs: 0, others: 0, boundMs: clock.nowMs() }, clock.nowMs());
    assert.equal(health.held(clock.nowMs()), true);
    clock.advance(50);
    assert.equal(health.held(clock.nowMs()), false);
  });

  it("quarantines a replica that refuses at once over requests, and tries it again with one of them", () => {
    const { fleet, clock, replica } = readyFleet(["a:1", "b:1"]);
    const a = replica("a:1");
    for (let at = 0; at < LIFECYCLE_LIMITS.busyToQuarantine; at++) {
      const one = fleet.ledger.reserve(request(), a, 0, 1, clock.nowMs());
      a.health.busy({ retryAfterMs: 0, others: 0, boundMs: clock.nowMs() }, clock.nowMs());
      fleet.ledger.release(one, clock.nowMs());
    }
    assert.deepEqual(ids(fleet.eligible(request(), NOBODY_EXCLUDED, clock.nowMs()).candidates), ["b:1"]);
    assert.equal(fleet.conditions.has("replica_quarantined", "a:1"), true);
    clock.advance(LIFECYCLE_LIMITS.quarantineBaseMs);
    assert.equal(fleet.eligible(request(), NOBODY_EXCLUDED, clock.nowMs()).candidates.length, 2);
    const trial = fleet.ledger.reserve(request(), a, 0, 1, clock.nowMs());
    assert.equal(trial.trial, true);
    const meanwhile = fleet.eligible(request(), NOBODY_EXCLUDED, clock.nowMs());
    assert.deepEqual(meanwhile.ineligible, [{ replicaId: "a:1", reason: "trial_under_way" }]);
    // The client leaves: no verdict, so the next request may be the trial.
    fleet.ledger.release(trial, clock.nowMs());
    assert.equal(fleet.eligible(request(), NOBODY_EXCLUDED, clock.nowMs()).candidates.length, 2);
    const second = fleet.ledger.reserve(request(), a, 0, 1, clock.nowMs());
    a.health.answered(clock.nowMs());
    fleet.ledger.release(second, clock.nowMs());
    assert.equal(a.lifecycle.state, "ready");
    assert.equal(fleet.conditions.has("replica_quarantined", "a:1"), false);
  });
});
