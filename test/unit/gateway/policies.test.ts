import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ConfigError } from "#src/config/configError.ts";
import { configFrom, parseConfig } from "#src/config/loadConfig.ts";
import {
  POLICY_NAMES as CONFIG_NAMES,
  PREDEFINED_CLASS_NAMES,
  PREDEFINED_GUARANTEED_SHARE,
} from "#src/config/names.ts";
import { Policies } from "#src/gateway/policies.ts";
import { restartKeys } from "#src/gateway/restartKeys.ts";
import { POLICY_NAMES, policyOptions } from "#src/routing/createPolicy.ts";
import { PREDEFINED_CLASSES } from "#src/scheduler/classes.ts";

describe("policies by configuration", () => {
  it("have the names that routing gives them, and classes the scheduler's", () => {
    assert.deepEqual([...CONFIG_NAMES], [...POLICY_NAMES]);
    assert.deepEqual(PREDEFINED_CLASS_NAMES.toSorted(), PREDEFINED_CLASSES.map(({ name }) => name).toSorted());
    for (const { guaranteedShare } of PREDEFINED_CLASSES) assert.equal(guaranteedShare, PREDEFINED_GUARANTEED_SHARE);
  });

  it("are one per model, each with its own state", () => {
    const policies = new Policies(configFrom({ policy: "round-robin", models: { m: { policy: "random" } } }));
    assert.equal(policies.of("m").name, "random");
    assert.equal(policies.of("a").name, "round-robin");
    assert.notEqual(policies.of("a"), policies.of("b"));
    assert.equal(policies.of("a"), policies.of("a"));
  });

  it("keep their state through a reload that does not change them", () => {
    const first = new Policies(configFrom({ policy: "round-robin" }));
    const [a, m] = [first.of("a"), first.of("m")];
    const second = new Policies(configFrom({ policy: "round-robin", models: { m: { policy: "random" } } }), first);
    assert.equal(second.of("a"), a);
    assert.notEqual(second.of("m"), m);
  });

  it("refuse options that they do not take, with key, value and what is allowed", () => {
    const [option = ""] = Object.keys(policyOptions("prefix-scorer"));
    const bad = (options: Record<string, number>) => () =>
      new Policies(configFrom({ models: { m: { policy: { name: "prefix-scorer", options } } } }));
    assert.throws(bad({ [option]: -1e12 }), (error: unknown) => {
      assert.ok(error instanceof ConfigError);
      assert.match(
        error.message,
        new RegExp(`^models\\.m\\.policy\\.options\\.${option}: -1000000000000 is not allowed; allowed: `),
      );
      return true;
    });
    const text = "policy: random\nmodels:\n  m:\n    policy:\n      name: prefix-scorer\n      options: { nope: 1 }\n";
    assert.throws(
      () => new Policies(parseConfig(text, {}, "kvasir.yaml")),
      /^ConfigError: kvasir\.yaml:6: models\.m\.policy/,
    );
    assert.throws(
      bad({ nope: 1 }),
      /models\.m\.policy\.options\.nope: unknown option; known: kvWeight, prefixWeight, queueWeight/,
    );
  });
});

describe("what a reload cannot take over", () => {
  it("is named", () => {
    const running = configFrom({});
    assert.deepEqual(restartKeys(running, configFrom({ limits: { connectMs: 7 }, policy: "random" })), []);
    assert.deepEqual(restartKeys(running, configFrom({ listen: { port: 1 }, admin: { port: 2 } })), [
      "listen",
      "admin.port",
    ]);
  });
});
