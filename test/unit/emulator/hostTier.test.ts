import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CacheListener } from "#src/emulator/scheduler/blockPool.ts";
import { GENERIC_PRIOR } from "#src/hardware/stepTimes.ts";
import { hashes, runToEnd, smallEngine, spec } from "./engineHarness.ts";

const FAST = { ...GENERIC_PRIOR, prefillBaseMs: 1, prefillMsPerKtok: 0, prefillMsPerKtok2: 0 };

function setUp(hostBlocks: number) {
  const told: string[] = [];
  const cacheListener: CacheListener = {
    stored: (owner, _chain, from, to) => void told.push(`gpu ${String(owner)}${from}..${to}`),
    removed: () => {},
    offloaded: (owner, _chain, at) => void told.push(`host ${String(owner)}${at}`),
    dropped: (hash) => void told.push(`dropped ${hashes(3, 1).indexOf(hash)}`),
    cleared: () => void told.push("cleared"),
  };
  // Memory for three blocks on the GPU, so that each prompt pushes out the one before.
  const core = smallEngine({ times: FAST, kvBlocks: 3, hostBlocks, restoreMsPerBlock: 10, cacheListener });
  const ask = (owner: string, family: number) => {
    const sequence = core.submit(spec(owner, 12, 0, { hashes: hashes(3, family) }), 0);
    const endMs = runToEnd(core);
    return { cachedTokens: sequence.cachedTokens, endMs };
  };
  return { core, ask, told };
}

describe("the host tier", () => {
  it("gives back what the GPU had to let go, for the time of the copy", () => {
    const { core, ask, told } = setUp(8);
    assert.deepEqual(ask("a", 1), { cachedTokens: 0, endMs: 1 });
    ask("b", 2);
    told.length = 0;
    // Two of three blocks come back, 10 ms each; the last one is computed again.
    assert.deepEqual(ask("a", 1), { cachedTokens: 8, endMs: 20 });
    assert.deepEqual(told, ["gpu a0..3"]);
    const { prefixHitTokens, hostHitTokens, hostQueriedTokens } = core.counters;
    assert.deepEqual([prefixHitTokens, hostHitTokens, hostQueriedTokens], [0, 8, 36]);
  });

  it("holds no more than it has room for, the least recently used out first", () => {
    const { ask, told } = setUp(4);
    ask("a", 1);
    ask("b", 2);
    assert.deepEqual(told, [
      "gpu a0..3",
      "host a0",
      "host a1",
      "host a2",
      "gpu b0..3",
      "host b0",
      "dropped 0",
      "host b1",
      "dropped 1",
      "host b2",
    ]);
    // Without its first block nothing of a chain is found.
    assert.equal(ask("a", 1).cachedTokens, 0);
  });

  it("is emptied with the rest, and is not there unless asked for", () => {
    const { core, ask } = setUp(8);
    ask("a", 1);
    assert.ok(core.clearCache());
    assert.equal(ask("a", 1).cachedTokens, 0);
    const without = setUp(0);
    without.ask("a", 1);
    without.ask("b", 2);
    assert.equal(without.ask("a", 1).cachedTokens, 0);
    assert.ok(without.told.every((one) => one.startsWith("gpu")));
  });
});
