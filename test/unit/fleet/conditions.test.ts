import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CONDITION_GUIDE } from "#src/fleet/conditionGuide.ts";
import { Conditions } from "#src/fleet/conditions.ts";
import { sharing } from "#src/fleet/topology.ts";

describe("conditions", () => {
  it("are news once, keep the time they began and take the latest message", () => {
    const conditions = new Conditions();
    assert.equal(conditions.raise("metrics_stale", "a:1", "old", 10), true);
    assert.equal(conditions.raise("metrics_stale", "a:1", "older", 20), false);
    const { mend } = CONDITION_GUIDE.metrics_stale;
    assert.deepEqual(conditions.list(), [
      { key: "metrics_stale", replicaId: "a:1", sinceMs: 10, message: "older", mend },
    ]);
    assert.equal(conditions.clear("metrics_stale", "a:1"), true);
    assert.equal(conditions.clear("metrics_stale", "a:1"), false);
  });

  it("go with their replica", () => {
    const conditions = new Conditions();
    conditions.raise("metrics_stale", "a:1", "", 0);
    conditions.raise("metric_missing", "a:1", "", 0);
    conditions.raise("index_approximate", null, "", 0);
    conditions.clearReplica("a:1");
    assert.deepEqual(
      conditions.list().map(({ key }) => key),
      ["index_approximate"],
    );
  });

  it("are bounded, and count what found no room", () => {
    const conditions = new Conditions(2);
    for (const id of ["a", "b", "c", "d"]) conditions.raise("metrics_stale", id, "", 0);
    assert.equal(conditions.list().length, 2);
    assert.equal(conditions.unkept, 2);
    conditions.clear("metrics_stale", "a");
    assert.equal(conditions.raise("metrics_stale", "c", "", 1), true);
  });
});

describe("topology", () => {
  it("finds the closest thing two replicas share", () => {
    const a = { host: "h1", nvlinkDomain: "n1", rack: "r1", zone: "z1" };
    assert.equal(sharing(a, { host: "h2", nvlinkDomain: "n1" }), "nvlink");
    assert.equal(sharing(a, { host: "h1", nvlinkDomain: "n2" }), "host");
    assert.equal(sharing(a, { host: "h2", rack: "r1" }), "rack");
    assert.equal(sharing(a, { zone: "z1" }), "zone");
    assert.equal(sharing(a, {}), "none");
    assert.equal(sharing({}, {}), "none");
  });
});
