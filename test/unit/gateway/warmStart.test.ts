import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "#src/determinism/clock.ts";
import { ManualTimers } from "#src/determinism/timers.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import { WarmStart } from "#src/gateway/warmStart.ts";
import { RequestLog } from "#src/telemetry/requestLog.ts";
import { endpoint, profile } from "../fleet/samples.ts";

const LIMIT_MS = 15_000;

function begun() {
  const timers = new ManualTimers(new ManualClock());
  const fleet = new Fleet();
  const log = new RequestLog({ level: "silent", destination: { write: () => undefined } });
  const warmStart = new WarmStart({ fleet, log, timers });
  fleet.applyEndpoints("list", [endpoint("a:1"), endpoint("b:1")], 0);
  warmStart.begin(LIMIT_MS);
  return { timers, fleet, warmStart };
}

describe("a warm start", () => {
  it("waits for what identified engines hold, and not for one that says nothing", async () => {
    const { timers, fleet, warmStart } = begun();
    fleet.applyProfile("a:1", profile(), 0);
    assert.deepEqual(
      warmStart.report().pending.map(({ replica }) => replica),
      ["a:1", "b:1"],
    );
    await timers.advance(1000);
    assert.deepEqual(
      warmStart.report().pending.map(({ replica }) => replica),
      ["a:1"],
    );
    warmStart.settled("a:1", 0);
    assert.ok(warmStart.report().done);
  });

  it("is not over while no engine is identified", async () => {
    const { timers, fleet, warmStart } = begun();
    await timers.advance(5000);
    assert.ok(!warmStart.report().done);
    fleet.applyProfile("b:1", profile(), 5000);
    assert.deepEqual(
      warmStart.report().pending.map(({ replica }) => replica),
      ["b:1"],
    );
    warmStart.failed("b:1", 0);
    assert.ok(warmStart.report().done);
  });

  it("ends when its time is up, and leaves no timer", async () => {
    const { timers, fleet, warmStart } = begun();
    fleet.applyProfile("a:1", profile(), 0);
    await timers.advance(LIMIT_MS);
    assert.ok(warmStart.report().done);
    assert.equal(timers.pending, 0);
  });
});
