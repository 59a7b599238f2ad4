import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AdapterSet } from "#src/fleet/adapterSet.ts";

describe("the adapters of a replica", () => {
  it("models which are in memory from own traffic while the engine does not say", () => {
    const adapters = new AdapterSet();
    adapters.setLoadable(["x", "y", "z"]);
    adapters.setInUse(null, 2);
    adapters.used("x");
    assert.equal(adapters.victim, null);
    adapters.used("y");
    adapters.used("x");
    assert.equal(adapters.victim, "y");
    adapters.used("z");
    assert.deepEqual([...adapters.resident], ["x", "z"]);
    assert.equal(adapters.basis, "modelled");
  });

  it("takes what the engine shows in use for loaded, and keeps idle ones until they are pushed out", () => {
    const adapters = new AdapterSet();
    adapters.setLoadable(["x", "y", "z"]);
    adapters.used("x");
    adapters.setInUse(["y"], 2);
    assert.deepEqual([...adapters.resident], ["x", "y"]);
    assert.equal(adapters.basis, "metrics");
    adapters.setInUse([], 2);
    assert.deepEqual([...adapters.resident], ["x", "y"], "idle is not gone");
    adapters.setInUse(["x", "z"], 2);
    assert.deepEqual([...adapters.resident], ["x", "z"]);
    adapters.setInUse([], 1);
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
