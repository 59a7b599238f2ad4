import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import { keptOf } from "#src/emulator/scheduler/speculation.ts";
import { parseSpeculation, SpecError } from "#src/simulator/fleetSpec.ts";
import { mean } from "#src/simulator/report/distribution.ts";
import { tpotMs } from "#src/simulator/report/summary.ts";
import { run } from "#src/simulator/run.ts";
import { arrival, engine, fixed, settings } from "./harness.ts";

const SPECULATION = { draftTokens: 3, acceptance: 0.7, draftMs: 0.5 };
/** 1 + 0.7 + 0.7² + 0.7³: tokens of a step, where nothing ends early. */
const TOKENS_A_STEP = 2.533;

function played(speculation: typeof SPECULATION | null, together: number) {
  const { world } = run(
    settings({ engines: [{ ...engine("only", { maxRunning: together }), speculation }] }),
    fixed(Array.from({ length: 200 }, (_, at) => arrival(Math.floor(at / together) * 20_000, { outputTokens: 400 }))),
  );
  return { tpot: mean(world.records.map(tpotMs)), counters: world.engines[0]!.core.counters };
}

describe("speculation", () => {
  it("keeps drafted tokens up to the first wrong one", () => {
    const random = new SeededRandom(1);
    const kept = Array.from({ length: 20_000 }, () => keptOf(3, { ...SPECULATION, random }));
    assert.ok(Math.abs(1 + mean(kept) - TOKENS_A_STEP) < 0.02);
    assert.equal(keptOf(5, { ...SPECULATION, acceptance: 1, random }), 5);
    assert.equal(keptOf(5, { ...SPECULATION, acceptance: 0, random }), 0);
  });

  it("makes answers faster by the tokens that a step yields, less what drafting takes", () => {
    const without = played(null, 1);
    const { tpot, counters } = played(SPECULATION, 1);
    assert.equal(counters.generatedTokens, 200 * 400);
    assert.ok(Math.abs(counters.acceptedDraftTokens / counters.draftTokens - (TOKENS_A_STEP - 1) / 3) < 0.01);
    // Three drafts of 0.5 ms, and three further tokens to verify at 10 ms a thousand.
    const expected = (without.tpot + 3 * 0.5 + 0.03) / TOKENS_A_STEP;
    assert.ok(Math.abs(tpot / expected - 1) < 0.02, `${tpot} instead of ${expected}`);
  });

  it("gains less in a large batch", () => {
    const free = { ...SPECULATION, draftMs: 0 };
    const gain = (together: number) => played(null, together).tpot / played(free, together).tpot;
    assert.ok(gain(20) < 0.95 * gain(1));
  });

  it("is described in one word", () => {
    assert.deepEqual(parseSpeculation("3:0.7:0.5"), SPECULATION);
    assert.deepEqual(parseSpeculation("2:0.5"), { draftTokens: 2, acceptance: 0.5, draftMs: 0 });
    for (const wrong of ["3", "0:0.5", "3:1.5", "3:0.5:x", "3:0.5:1:1"])
      assert.throws(() => parseSpeculation(wrong), SpecError);
  });
});
