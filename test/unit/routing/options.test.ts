import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createPolicy, POLICY_NAMES, policyOptions } from "#src/routing/createPolicy.ts";
import { PolicyOptionError } from "#src/routing/options.ts";

function refusal(name: string, options: Record<string, unknown>): PolicyOptionError {
  let caught: unknown = null;
  try {
    createPolicy(name, options);
  } catch (thrown) {
    caught = thrown;
  }
  assert.ok(caught instanceof PolicyOptionError, `${name} took ${JSON.stringify(options)}`);
  return caught;
}

describe("policy options", () => {
  it("names key, value and range of what is refused", () => {
    const error = refusal("session", { loadFactor: 0.5 });
    assert.equal(error.key, "session.loadFactor");
    assert.equal(error.value, 0.5);
    assert.equal(error.allowed, "a number from 1 to 1000");
    assert.match(error.message, /session\.loadFactor: 0\.5 is not allowed; allowed: a number from 1 to 1000/);
  });

  it("refuses unknown options, also where there are none", () => {
    assert.match(refusal("tree-match", { cacheTreshold: 0.4 }).allowed, /cacheThreshold, balanceAbsThreshold/);
    assert.equal(refusal("random", { seed: 4 }).allowed, "options none");
    assert.equal(refusal("kvasir", { constructor: 1 }).key, "kvasir.constructor");
  });

  it("refuses what is no number, or no whole one", () => {
    for (const value of ["2", null, Number.NaN, Number.POSITIVE_INFINITY, true, [1]])
      assert.equal(refusal("dynamo-cost", { temperature: value }).key, "dynamo-cost.temperature");
    assert.equal(refusal("kvasir", { stepTokenBudget: 100.5 }).allowed, "a whole number from 16 to 1000000");
  });

  it("refuses an unknown policy with the names of all", () => {
    const error = refusal("fastest", {});
    assert.equal(error.allowed, POLICY_NAMES.join(", "));
    assert.equal(refusal("toString", {}).key, "policy");
  });

  it("has every default within its own range", () => {
    for (const name of POLICY_NAMES) {
      for (const [key, option] of Object.entries(policyOptions(name))) {
        assert.doesNotThrow(() => createPolicy(name, { [key]: option.default }), `${name}.${key}`);
        assert.notEqual(option.about, "");
      }
      assert.equal(createPolicy(name).name, name);
    }
  });
});
