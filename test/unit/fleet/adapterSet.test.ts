import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AdapterSet } from "#src/fleet/adapterSet.ts";

describe("the adapters of a replica", () => {
  it("models which are in memory from own traffic while the engine does not say", () => {
    const adapters = new AdapterSet();
    adapters.setLoadable(["x", "y", "z"]);
    adapters.setResident(null, 2);
    adapters.used("x");
    assert.equal(adapters.victim, null);
    adapters.used("y");
    adapters.used("x");
    assert.equal(adapters.victim, "y");
    adapters.used("z");
    assert.deepEqual([...adapters.resident], ["x", "z"]);
    assert.equal(adapters.basis, "modelled");
  });

  it("believes the engine, and keeps the order of use that it knows", () => {
    const adapters = new AdapterSet();
    adapters.setLoadable(["x", "y", "z"]);
    adapters.setResident(["x", "y"], 3);
    adapters.used("x");
    adapters.setResident(["x", "y", "z"], 3);
    assert.equal(adapters.victim, "y");
    assert.equal(adapters.basis, "metrics");
    adapters.setResident(["z"], 3);
    assert.deepEqual([...adapters.resident], ["z"]);
  });

  it("forgets an adapter that the engine no longer lists", () => {
    const adapters = new AdapterSet();
    adapters.setLoadable(["x"]);
    adapters.used("x");
    adapters.setLoadable([]);
    assert.equal(adapters.canServe("x"), false);
    assert.equal(adapters.isResident("x"), false);
  });
});
