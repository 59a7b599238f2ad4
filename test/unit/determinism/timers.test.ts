import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "#src/determinism/clock.ts";
import { ManualTimers } from "#src/determinism/timers.ts";

describe("timers on moved time", () => {
  it("run in the order of their times, each at its own", async () => {
    const clock = new ManualClock(100);
    const timers = new ManualTimers(clock);
    const ran: [string, number][] = [];
    const note = (name: string) => () => void ran.push([name, clock.nowMs()]);
    timers.after(30, note("c"));
    timers.after(10, note("a"));
    timers.after(20, () => timers.after(5, note("b")));
    const cancel = timers.after(15, note("cancelled"));
    cancel();
    await timers.advance(29);
    assert.deepEqual(ran, [
      ["a", 110],
      ["b", 125],
    ]);
    assert.equal(timers.pending, 1);
    await timers.advance(1);
    assert.deepEqual(ran.at(-1), ["c", 130]);
    assert.equal(clock.nowMs(), 130);
  });

  it("let promises settle between two timers", async () => {
    const timers = new ManualTimers(new ManualClock());
    let settled = false;
    timers.after(1, () => void Promise.resolve().then(() => (settled = true)));
    timers.after(2, () => assert.ok(settled));
    await timers.advance(2);
    assert.equal(timers.pending, 0);
  });
});
