import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#src/determinism/clock.ts";
import { ManualTimers } from "#src/determinism/timers.ts";
import { Deadlines } from "#src/dispatch/deadlines.ts";

function setUp() {
  const clock = new ManualClock();
  const timers = new ManualTimers(clock);
  const deadlines = new Deadlines({ clock, timers, granularityMs: 100 });
  const passed: number[] = [];
  const make = (deadlineMs: number) => {
    const deadline = { deadlineMs, onDeadline: (nowMs: number) => void passed.push(nowMs) };
    deadlines.watch(deadline);
    return deadline;
  };
  return { timers, deadlines, passed, make };
}

describe("Deadlines", () => {
  test("a deadline is told once, late by no more than the granularity", async () => {
    const { timers, passed, make } = setUp();
    make(250);
    await timers.advance(250);
    assert.deepEqual(passed, []);
    await timers.advance(1000);
    assert.deepEqual(passed, [300]);
  });

  test("it may move, either way, at no cost", async () => {
    const { timers, passed, make } = setUp();
    const deadline = make(150);
    deadline.deadlineMs = 1000;
    await timers.advance(950);
    assert.deepEqual(passed, []);
    deadline.deadlineMs = 960;
    await timers.advance(50);
    assert.deepEqual(passed, [1000]);
  });

  test("with nothing to watch there is no timer", async () => {
    const { timers, deadlines, make } = setUp();
    const deadline = make(Number.POSITIVE_INFINITY);
    await timers.advance(1000);
    assert.equal(timers.pending, 1);
    deadlines.unwatch(deadline);
    await timers.advance(100);
    assert.equal(timers.pending, 0);
    assert.equal(deadlines.size, 0);
  });
});
