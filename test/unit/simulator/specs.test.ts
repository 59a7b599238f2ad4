import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PolicyOptionError } from "#src/routing/options.ts";
import { engineSetups, parseGpus, parseSlow, SpecError } from "#src/simulator/fleetSpec.ts";
import { parseRouter, parseShares } from "#src/simulator/routerSpec.ts";
import { parseScenario } from "#src/simulator/scenario.ts";
import { engine } from "./harness.ts";

describe("a fleet", () => {
  const { times: _times, kvBlocks: _kvBlocks, ...core } = engine("e").core;

  it("is made of groups of GPUs, some of them slow", () => {
    const setups = engineSetups(parseGpus("h200:2,h100:1", 8), parseSlow("0.5x1"), "qwen3-32b", {
      ...core,
      kvTokens: null,
    });
    assert.deepEqual(
      setups.map(({ name, prior, slowFactor }) => [name, prior, slowFactor]),
      [
        ["h200-0", "qwen3-32b/h200_tp2", 2],
        ["h200-1", "qwen3-32b/h200_tp2", 1],
        ["h100-0", "qwen3-32b/h100_tp2", 1],
      ],
    );
    // 766 thousand tokens on two H200.
    assert.equal(Math.round((setups[0]!.core.kvBlocks * 16) / 1000), 766);
    assert.deepEqual(parseGpus("h100", 3), [{ gpu: "h100", count: 3 }]);
  });

  it("refuses what it cannot make", () => {
    assert.throws(() => parseGpus("h200:x,h100:1", 8), SpecError);
    assert.throws(() => parseSlow("2"), SpecError);
    assert.throws(() => parseSlow("0x2"), SpecError);
    const one = parseGpus("h200", 1);
    assert.throws(() => engineSetups(one, null, "no-such-model", { ...core, kvTokens: null }), /no-such-model/u);
    assert.throws(() => engineSetups(one, parseSlow("0.5x2"), "qwen3-32b", { ...core, kvTokens: 1_000 }), SpecError);
  });
});

describe("a router", () => {
  it("is a policy with options and a way to bind", () => {
    assert.deepEqual(parseRouter("kvasir"), { label: "kvasir", policy: "kvasir", options: {}, binding: "scheduler" });
    assert.equal(parseRouter("lmetric").binding, "immediate");
    assert.equal(parseRouter("lmetric@queued").binding, "scheduler");
    const { options, policy, label } = parseRouter("kvasir@immediate:queueWeight=2;tieMs=0.5");
    assert.deepEqual(
      [policy, options, label],
      ["kvasir", { queueWeight: 2, tieMs: 0.5 }, "kvasir@immediate:queueWeight=2;tieMs=0.5"],
    );
  });

  it("is refused where it cannot be", () => {
    assert.throws(() => parseRouter("kvasir@sometimes"), SpecError);
    assert.throws(() => parseRouter("kvasir:queueWeight=much"), SpecError);
    assert.throws(() => parseRouter("nobody"), PolicyOptionError);
    assert.throws(() => parseRouter("kvasir:nothing=1"), PolicyOptionError);
  });
});

describe("shares and scenarios", () => {
  it("are read", () => {
    assert.deepEqual(parseShares("a:0.1,b"), [
      { name: "a", weight: 0.1 },
      { name: "b", weight: 1 },
    ]);
    assert.deepEqual(
      parseScenario(
        [
          { kind: "crash", atSeconds: 60, engine: 1, downSeconds: 5, loadSeconds: 40 },
          { kind: "slow", atSeconds: 90, engine: 0, factor: 2 },
        ],
        "s",
        2,
      ),
      [
        { kind: "crash", atMs: 60_000, engine: 1, downMs: 5_000, loadMs: 40_000 },
        { kind: "slow", atMs: 90_000, engine: 0, factor: 2 },
      ],
    );
  });

  it("are refused with a reason", () => {
    assert.throws(() => parseShares("a:none"), SpecError);
    assert.throws(() => parseScenario([{ kind: "crash", atSeconds: 1 }], "s.json", 2), /s\.json/u);
    assert.throws(() => parseScenario([{ kind: "slow", atSeconds: 1, engine: 2, factor: 2 }], "s", 2), /no engine 2/u);
  });
});
