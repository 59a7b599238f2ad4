import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "#src/determinism/clock.ts";
import { ManualTimers } from "#src/determinism/timers.ts";
import { EngineLoop, type SequenceSink } from "#src/emulator/engineLoop.ts";
import type { SequenceSpec } from "#src/emulator/scheduler/sequence.ts";
import { GENERIC_PRIOR } from "#src/hardware/stepTimes.ts";

/** Prompts and steps take 10 modelled milliseconds each, whatever their size. */
const TIMES = {
  ...GENERIC_PRIOR,
  prefillBaseMs: 10,
  prefillMsPerKtok: 0,
  prefillMsPerKtok2: 0,
  stepBaseMs: 10,
  stepMsPerSequence: 0,
  stepMsPerKtok: 0,
};

function setUp(timeScale: number): {
  readonly loop: EngineLoop;
  readonly clock: ManualClock;
  readonly timers: ManualTimers;
  readonly heard: string[];
  readonly spec: (name: string, outputTokens: number) => SequenceSpec<SequenceSink>;
} {
  const clock = new ManualClock(1000);
  const timers = new ManualTimers(clock);
  const heard: string[] = [];
  const loop = new EngineLoop(
    {
      times: TIMES,
      kvBlocks: 1000,
      blockTokens: 16,
      maxRunning: 8,
      maxBatchedTokens: 8192,
      policy: "fcfs",
      prefixCaching: true,
      maxResidentAdapters: 1,
      adapterLoadMs: 0,
    },
    { timeScale, clock, timers },
  );
  const spec = (name: string, outputTokens: number): SequenceSpec<SequenceSink> => ({
    promptTokens: 10,
    outputTokens,
    hashes: new BigUint64Array(0),
    adapter: null,
    priority: 0,
    readsCache: true,
    owner: {
      token: () => void heard.push(`${name} ${clock.nowMs() - 1000}`),
      finished: () => void heard.push(`${name} ends ${clock.nowMs() - 1000}`),
    },
  });
  return { loop, clock, timers, heard, spec };
}

describe("the engine loop", () => {
  it("delivers each token when its step ends, scaled to real time", async () => {
    for (const timeScale of [1, 0.5]) {
      const { loop, timers, heard, spec } = setUp(timeScale);
      loop.submit([spec("a", 3)]);
      await timers.advance(1000);
      assert.deepEqual(heard, [10, 20, 30].map((ms) => `a ${ms * timeScale}`).concat(`a ends ${30 * timeScale}`));
    }
  });

  it("sets no timer while there is nothing to do", async () => {
    const { loop, timers, spec } = setUp(1);
    assert.equal(timers.pending, 0);
    loop.submit([spec("a", 1)]);
    assert.equal(timers.pending, 1);
    await timers.advance(10);
    assert.equal(timers.pending, 0);
  });

  it("lets a newcomer into the next step, not the one under way", async () => {
    const { loop, timers, heard, spec } = setUp(1);
    loop.submit([spec("a", 4)]);
    await timers.advance(5);
    loop.submit([spec("b", 1)]);
    await timers.advance(15);
    assert.deepEqual(heard, ["a 10", "a 20", "b 20", "b ends 20"]);
  });

  it("does not add up the lateness of timers", async () => {
    const { loop, clock, timers, heard, spec } = setUp(1);
    loop.submit([spec("a", 4)]);
    // The process was busy: the first timer fires 17 ms late, when the second token is due as well.
    clock.advance(27);
    await timers.advance(0);
    assert.deepEqual(heard, ["a 27", "a 27"]);
    await timers.advance(13);
    assert.deepEqual(heard.slice(2), ["a 30", "a 40", "a ends 40"]);
  });

  it("gives up catching up when it is far behind", async () => {
    const { loop, clock, timers, heard, spec } = setUp(1);
    loop.submit([spec("a", 3)]);
    clock.advance(1000);
    await timers.advance(0);
    assert.deepEqual(heard, ["a 1000"]);
    await timers.advance(20);
    assert.deepEqual(heard, ["a 1000", "a 1010", "a 1020", "a ends 1020"]);
  });

  it("tells an aborted sequence nothing more, and the others everything", async () => {
    const { loop, timers, heard, spec } = setUp(1);
    const [first] = loop.submit([spec("a", 3), spec("b", 2)]);
    await timers.advance(10);
    assert.ok(first !== undefined && loop.abort(first));
    await timers.advance(100);
    assert.deepEqual(heard, ["a 10", "b 10", "b 20", "b ends 20"]);
  });

  it("is silent once stopped", async () => {
    const { loop, timers, heard, spec } = setUp(1);
    loop.submit([spec("a", 3)]);
    await timers.advance(10);
    loop.stop();
    loop.submit([spec("b", 3)]);
    await timers.advance(100);
    assert.deepEqual([heard, timers.pending], [["a 10"], 0]);
  });
});
