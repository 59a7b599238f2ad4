import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CacheListener } from "#src/emulator/scheduler/blockPool.ts";
import { hashes, runToEnd, smallEngine, spec } from "./engineHarness.ts";

describe("the prefix cache", () => {
  it("finds full blocks only, and always leaves a token to compute", () => {
    const core = smallEngine();
    const ask = (promptTokens: number): number => {
      const sequence = core.submit(spec("a", promptTokens, 1, { hashes: hashes(Math.floor(promptTokens / 4), 1) }), 0);
      runToEnd(core);
      return sequence.cachedTokens;
    };
    // 16 tokens are 4 blocks; a full hit computes the last block again.
    assert.deepEqual([ask(16), ask(16), ask(18), ask(10)], [0, 12, 16, 8]);
    assert.deepEqual([core.counters.prefixQueriedTokens, core.counters.prefixHitTokens], [60, 36]);
  });

  it("stops at the first block that differs", () => {
    const core = smallEngine();
    core.submit(spec("a", 20, 1, { hashes: hashes(5, 1) }), 0);
    runToEnd(core);
    const sibling = core.submit(spec("b", 20, 1, { hashes: hashes(5, 1, 2) }), 0);
    runToEnd(core);
    assert.equal(sibling.cachedTokens, 8);
  });

  it("serves what a request in the same step has just begun", () => {
    const core = smallEngine();
    core.submit(spec("a", 12, 1, { hashes: hashes(3, 1) }), 0);
    const twin = core.submit(spec("b", 12, 1, { hashes: hashes(3, 1) }), 0);
    core.step(0);
    assert.equal(twin.cachedTokens, 8);
  });

  it("holds the answer too, where its hashes are known", () => {
    const core = smallEngine();
    core.submit(spec("turn 1", 8, 9, { hashes: hashes(4, 1) }), 0);
    runToEnd(core);
    const next = core.submit(spec("turn 2", 20, 1, { hashes: hashes(5, 1) }), 0);
    runToEnd(core);
    assert.equal(next.cachedTokens, 16);
  });

  it("is not read by who must not, nor filled when switched off", () => {
    const core = smallEngine();
    core.submit(spec("a", 12, 1, { hashes: hashes(3, 1) }), 0);
    runToEnd(core);
    const logprobs = core.submit(spec("b", 12, 1, { hashes: hashes(3, 1), readsCache: false }), 0);
    runToEnd(core);
    assert.equal(logprobs.cachedTokens, 0);

    const off = smallEngine({ prefixCaching: false });
    for (const name of ["a", "b"]) {
      const sequence = off.submit(spec(name, 12, 1, { hashes: hashes(3, 1) }), 0);
      runToEnd(off);
      assert.equal(sequence.cachedTokens, 0);
    }
  });

  it("evicts leaves before what they hang on, and the least recently used first", () => {
    const removed: bigint[] = [];
    const cacheListener = { stored: () => {}, removed: (hash: bigint) => void removed.push(hash), cleared: () => {} };
    const core = smallEngine({ kvBlocks: 8, maxBatchedTokens: 64, cacheListener });
    for (const [family, blocks] of [
      [1, 4],
      [2, 3],
      // One block is unused, seven are cached: two must go.
      [3, 3],
    ] as const) {
      core.submit(spec(String(family), blocks * 4, 1, { hashes: hashes(blocks, family) }), 0);
      runToEnd(core);
    }
    const oldest = hashes(4, 1);
    assert.deepEqual(removed, [oldest[3], oldest[2]]);
  });

  it("is emptied only while nothing is held", () => {
    const core = smallEngine();
    core.submit(spec("a", 12, 3, { hashes: hashes(3, 1) }), 0);
    core.step(0);
    assert.equal(core.clearCache(), false);
    runToEnd(core);
    assert.equal(core.clearCache(), true);
    const again = core.submit(spec("b", 12, 1, { hashes: hashes(3, 1) }), 0);
    runToEnd(core);
    assert.equal(again.cachedTokens, 0);
  });

  it("tells of every block that comes and goes, so that a listener knows what it holds", () => {
    const copies = new Map<bigint, number>();
    let stored = 0;
    const cacheListener: CacheListener = {
      stored: (_owner, chain, from, to) => {
        for (const hash of chain.subarray(from, to)) copies.set(hash, (copies.get(hash) ?? 0) + 1);
        stored += to - from;
      },
      removed: (hash) => {
        const left = (copies.get(hash) ?? 0) - 1;
        assert.ok(left >= 0);
        if (left === 0) copies.delete(hash);
        else copies.set(hash, left);
      },
      cleared: () => copies.clear(),
    };
    const core = smallEngine({ kvBlocks: 12, cacheListener });
    for (let at = 0; at < 30; at++) core.submit(spec(String(at), 17, 4, { hashes: hashes(5, at % 6, 3, at) }), 0);
    runToEnd(core);
    assert.ok(stored > copies.size && copies.size > 0);
    // What the listener holds is what a request finds.
    const chain = hashes(5, 5, 3, 29);
    const missing = chain.findIndex((hash) => !copies.has(hash));
    const probe = core.submit(spec("probe", 21, 0, { hashes: chain }), 0);
    core.step(0);
    assert.equal(probe.cachedTokens, (missing === -1 ? 5 : missing) * 4);
    assert.ok(probe.cachedTokens > 0);
    assert.equal(core.clearCache(), true);
    assert.equal(copies.size, 0);
  });

  it("stores an equal block again where it is computed again, and removes each copy", () => {
    const told: string[] = [];
    const cacheListener: CacheListener = {
      stored: (_owner, _chain, from, to) => void told.push(`stored ${from}..${to}`),
      removed: (hash) => void told.push(`removed ${chain.indexOf(hash)}`),
      cleared: () => {},
    };
    const chain = hashes(2, 1);
    const core = smallEngine({ kvBlocks: 4, cacheListener });
    const ask = (owner: string, readsCache = true): number => {
      const sequence = core.submit(spec(owner, 8, 1, { hashes: chain, readsCache }), 0);
      runToEnd(core);
      return sequence.cachedTokens;
    };
    // The last block of a full hit is computed again, so that there is something to sample from.
    assert.deepEqual([ask("a"), ask("b")], [0, 4]);
    assert.deepEqual(told.splice(0), ["stored 0..2", "stored 1..2"]);
    // One block is free; what it takes besides is the oldest copy of the last block.
    assert.equal(ask("c", false), 0);
    assert.deepEqual(told.splice(0), ["removed 1", "stored 0..2"]);
    // Whoever asks next finds one copy, and the last one goes when all memory is taken.
    assert.equal(ask("d"), 4);
    assert.deepEqual(told.splice(0), ["removed 1", "stored 1..2"]);
    core.submit(spec("other", 16, 0, { hashes: hashes(4, 2) }), 0);
    runToEnd(core);
    assert.deepEqual(told.sort(), ["removed 0", "removed 0", "removed 1", "removed 1", "stored 0..4"]);
  });
});
