import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GENERIC_PRIOR, prefillMs, stepMs } from "#src/hardware/stepTimes.ts";
import { hashes, runToEnd, smallEngine, spec } from "./engineHarness.ts";

describe("a step", () => {
  it("prices a prompt alone as the prefill formula says", () => {
    const core = smallEngine({ maxBatchedTokens: 8192, kvBlocks: 4096 });
    core.submit(spec("a", 3000, 1), 0);
    assert.equal(core.step(0).durationMs, prefillMs(GENERIC_PRIOR, 3000, 0));
  });

  it("prices decoding by sequences and the tokens they hold", () => {
    const core = smallEngine({ maxBatchedTokens: 8192, kvBlocks: 4096 });
    core.submit(spec("a", 1000, 5), 0);
    core.submit(spec("b", 500, 5), 0);
    core.step(0);
    const step = core.step(100);
    assert.equal(step.durationMs, stepMs(GENERIC_PRIOR, 2, 1001 + 501));
    assert.deepEqual(
      step.emitted.map(({ owner }) => owner),
      ["a", "b"],
    );
  });

  it("adds to a decode step what a chunk costs without its base", () => {
    const core = smallEngine({ maxBatchedTokens: 8192, kvBlocks: 4096 });
    core.submit(spec("a", 1000, 5), 0);
    core.step(0);
    core.submit(spec("b", 2000, 5), 1);
    const expected = stepMs(GENERIC_PRIOR, 1, 1001) + prefillMs(GENERIC_PRIOR, 2000, 0) - GENERIC_PRIOR.prefillBaseMs;
    assert.ok(Math.abs(core.step(1).durationMs - expected) < 1e-9);
  });

  it("computes a long prompt in chunks, each behind the one before, while others go on decoding", () => {
    const core = smallEngine({ maxBatchedTokens: 10 });
    core.submit(spec("decoding", 4, 9), 0);
    core.step(0);
    const long = core.submit(spec("long", 25, 1), 0);
    const progress = Array.from({ length: 3 }, (_, at) => {
      const step = core.step(at + 1);
      return [step.tokens, long.computedTokens, step.emitted.map(({ owner }) => owner).join()];
    });
    assert.deepEqual(progress, [
      [10, 9, "decoding"],
      [10, 18, "decoding"],
      [8, 25, "decoding,long"],
    ]);
  });

  it("does nothing and takes no time without work", () => {
    const step = smallEngine().step(5);
    assert.deepEqual([step.durationMs, step.tokens, step.emitted.length, step.finished.length], [0, 0, 0, 0]);
  });

  it("takes as many times longer as the engine is slowed down", () => {
    const [normal, slow] = [smallEngine(), smallEngine()];
    slow.slowFactor = 3;
    for (const core of [normal, slow]) core.submit(spec("a", 8, 2), 0);
    assert.equal(slow.step(0).durationMs, 3 * normal.step(0).durationMs);
  });
});

describe("a sequence", () => {
  it("knows when it was scheduled, got its first token and ended", () => {
    const core = smallEngine({ maxRunning: 1 });
    core.submit(spec("first", 8, 2), 0);
    const second = core.submit(spec("second", 8, 3), 5);
    const ends: number[] = [];
    runToEnd(core, 10, (endMs) => ends.push(endMs));
    assert.equal(second.firstScheduledMs, ends[1]);
    assert.equal(second.firstTokenMs, ends[2]);
    assert.equal(second.finishedMs, ends[4]);
    assert.equal(second.lastGapMs, (ends[4] ?? 0) - (ends[3] ?? 0));
  });

  it("without output ends with its prompt and emits nothing", () => {
    const core = smallEngine();
    const sequence = core.submit(spec("embedding", 9, 0), 0);
    const step = core.step(0);
    assert.deepEqual([step.emitted.length, step.finished.length, sequence.state], [0, 1, "finished"]);
    assert.equal(core.counters.promptTokens, 9);
  });

  it("waits while all batch slots are taken, first come first served", () => {
    const core = smallEngine({ maxRunning: 2 });
    const order: string[] = [];
    for (const name of ["a", "b", "c", "d"]) core.submit(spec(name, 4, 2), 0);
    while (core.hasWork) for (const { owner } of core.step(0).finished) order.push(owner);
    assert.deepEqual(order, ["a", "b", "c", "d"]);
  });

  it("of a more urgent priority goes first, under that policy only", () => {
    for (const [policy, expected] of [
      ["fcfs", "late,urgent"],
      ["priority", "urgent,late"],
    ] as const) {
      const core = smallEngine({ maxRunning: 1, policy });
      core.submit(spec("late", 4, 1, { priority: 5 }), 0);
      core.submit(spec("urgent", 4, 1, { priority: -1 }), 0);
      const order: string[] = [];
      while (core.hasWork) for (const { owner } of core.step(0).finished) order.push(owner);
      assert.equal(order.join(), expected);
    }
  });

  it("that is aborted frees its memory whether it waits, is prefilled or decodes", () => {
    const core = smallEngine({ maxRunning: 2, maxBatchedTokens: 12 });
    const decoding = core.submit(spec("decoding", 4, 50), 0);
    core.step(0);
    const prefilling = core.submit(spec("prefilling", 40, 5), 0);
    const waiting = core.submit(spec("waiting", 4, 5), 0);
    core.step(0);
    assert.deepEqual([decoding.state, prefilling.state, waiting.state], ["running", "running", "waiting"]);
    for (const sequence of [waiting, prefilling, decoding]) assert.equal(core.abort(sequence), true);
    assert.equal(core.abort(decoding), false);
    assert.deepEqual([core.freeBlocks, core.hasWork, core.counters.aborted], [64, false, 3]);
  });
});

describe("memory", () => {
  it("that runs out preempts who came last; both still finish with every token", () => {
    const core = smallEngine({ kvBlocks: 10, maxBatchedTokens: 64 });
    const first = core.submit(spec("first", 16, 16), 0);
    const second = core.submit(spec("second", 16, 16), 0);
    const tokens = new Map<string, number>();
    while (core.hasWork) for (const { owner } of core.step(0).emitted) tokens.set(owner, (tokens.get(owner) ?? 0) + 1);
    assert.equal(first.preemptions, 0);
    assert.ok(second.preemptions > 0);
    assert.deepEqual(
      [...tokens],
      [
        ["first", 16],
        ["second", 16],
      ],
    );
  });

  it("preempts the least urgent under the priority policy", () => {
    const core = smallEngine({ kvBlocks: 10, maxBatchedTokens: 64, policy: "priority" });
    const idle = core.submit(spec("can wait", 16, 16, { priority: 9 }), 0);
    const urgent = core.submit(spec("urgent", 16, 16, { priority: 0 }), 0);
    runToEnd(core);
    assert.equal(urgent.preemptions, 0);
    assert.ok(idle.preemptions > 0);
  });

  it("refuses what can never fit", () => {
    const core = smallEngine({ kvBlocks: 10 });
    assert.deepEqual([core.fits(30, 10), core.fits(30, 11)], [true, false]);
    assert.throws(() => core.submit(spec("huge", 30, 11), 0), { code: "invalid_request" });
    assert.equal(core.hasWork, false);
  });

  it("keeps the head of the queue out until there is room, and lets it in then", () => {
    const core = smallEngine({ kvBlocks: 10, maxBatchedTokens: 64 });
    core.submit(spec("small", 12, 4), 0);
    const big = core.submit(spec("big", 32, 2), 0);
    core.step(0);
    assert.equal(big.state, "waiting");
    runToEnd(core);
    assert.equal(big.state, "finished");
  });
});

describe("adapters", () => {
  it("are loaded by the first step that needs them, once", () => {
    const core = smallEngine();
    core.submit(spec("a", 8, 3, { adapter: "x" }), 0);
    const base = smallEngine();
    base.submit(spec("a", 8, 3), 0);
    assert.equal(core.step(0).durationMs, base.step(0).durationMs + 100);
    assert.equal(core.step(0).durationMs, base.step(0).durationMs);
    assert.deepEqual(core.residentAdapters, ["x"]);
  });

  it("beyond the slots wait for a running one to end, without holding up others", () => {
    const core = smallEngine({ maxResidentAdapters: 1 });
    core.submit(spec("x", 4, 3, { adapter: "x" }), 0);
    const other = core.submit(spec("y", 4, 1, { adapter: "y" }), 0);
    const base = core.submit(spec("base", 4, 1), 0);
    core.step(0);
    assert.deepEqual([other.state, base.state], ["waiting", "finished"]);
    runToEnd(core);
    assert.deepEqual([other.state, core.residentAdapters], ["finished", ["y"]]);
  });

  it("least recently used goes first", () => {
    const core = smallEngine({ maxResidentAdapters: 2 });
    for (const adapter of ["x", "y", "x", "z"]) {
      core.submit(spec(adapter, 4, 1, { adapter }), 0);
      runToEnd(core);
    }
    assert.deepEqual(core.residentAdapters, ["x", "z"]);
  });
});

describe("work", () => {
  it("is the same each time it is run", () => {
    const run = (): unknown => {
      const core = smallEngine({ kvBlocks: 24 });
      const sequences = Array.from({ length: 20 }, (_, at) =>
        core.submit(spec(String(at), 5 + (at % 7) * 3, 1 + (at % 5) * 4, { hashes: hashes(4, at % 3, 2, at) }), at),
      );
      const endMs = runToEnd(core, 0);
      return [endMs, core.counters, sequences.map(({ finishedMs, cachedTokens }) => [finishedMs, cachedTokens])];
    };
    assert.deepEqual(run(), run());
  });
});
