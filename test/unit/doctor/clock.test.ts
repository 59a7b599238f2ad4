import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { readClock } from "#src/doctor/look/clock.ts";
import type { AskEngine } from "#src/engines/engineAdapter.ts";

const NOW_MS = Date.UTC(2026, 0, 1);

/** Asks at `NOW_MS` an engine that is `aheadMs` ahead; question and answer are under way for these times. */
function read(aheadMs: number, thereMs: number, backMs: number) {
  let nowMs = NOW_MS;
  const ask: AskEngine = () => {
    const date = new Date(NOW_MS + thereMs + aheadMs).toUTCString();
    nowMs += thereMs + backMs;
    return Promise.resolve({ status: 200, headers: { date }, body: "" });
  };
  return readClock(ask, null, () => nowMs);
}

describe("the clock of an engine", () => {
  it("is not called wrong for the rounding of its Date or a slow answer", async () => {
    const span = fc.integer({ min: 0, max: 5000 });
    await fc.assert(
      fc.asyncProperty(span, span, async (thereMs, backMs) => {
        assert.equal((await read(0, thereMs, backMs)).dateAheadMs, 0);
      }),
    );
  });

  it("is found ahead or behind, never by more than it is", async () => {
    const skew = fc.integer({ min: -100_000, max: 100_000 });
    await fc.assert(
      fc.asyncProperty(skew, fc.integer({ min: 0, max: 300 }), async (aheadMs, thereMs) => {
        const found = (await read(aheadMs, thereMs, 50)).dateAheadMs ?? 0;
        assert.ok(Math.abs(found) <= Math.abs(aheadMs));
        assert.ok(Math.abs(found) >= Math.abs(aheadMs) - 1000 - thereMs - 50);
      }),
    );
  });

  it("is unknown where no Date comes", async () => {
    const silent = await readClock(
      () => Promise.reject(new Error("gone")),
      NOW_MS / 1000 + 5,
      () => NOW_MS,
    );
    assert.deepEqual(silent, { dateAheadMs: null, startsInMs: 5000 });
  });
});
