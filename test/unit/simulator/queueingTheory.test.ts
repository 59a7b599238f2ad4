import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import type { StepTimes } from "#src/hardware/stepTimes.ts";
import { mean } from "#src/simulator/report/distribution.ts";
import { run } from "#src/simulator/run.ts";
import type { Arrival } from "#src/simulator/workload/arrival.ts";
import { exponential } from "#src/simulator/workload/draws.ts";
import { arrival, engine, fixed, router, settings } from "./harness.ts";

const REQUESTS = 15_000;
const ZERO: StepTimes = {
  prefillBaseMs: 0,
  prefillMsPerKtok: 0,
  prefillMsPerKtok2: 0,
  stepBaseMs: 0,
  stepMsPerSequence: 0,
  stepMsPerKtok: 0,
};

/** Poisson arrivals, so many per millisecond, of requests that `make` draws. */
function poisson(perMs: number, seed: number, make: (random: SeededRandom) => Partial<Arrival>): Arrival[] {
  const random = new SeededRandom(seed);
  let atMs = 0;
  return Array.from({ length: REQUESTS }, () => {
    atMs += exponential(1 / perMs, random);
    return arrival(atMs, make(random));
  });
}

function alone(times: StepTimes, over: { maxRunning: number; maxBatchedTokens: number }) {
  return settings({
    engines: [engine("only", { times, kvBlocks: 1_000_000, prefixCaching: false, ...over })],
    router: router("round-robin", "immediate"),
    networkMs: 0,
  });
}

/**
 * Means over this many dependent waiting times vary by 3% between seeds (as seen over twelve of them, and more at higher
 * loads); the seeds are fixed.
 */
const WITHIN = 0.08;

function near(measured: number, expected: number, what: string): void {
  assert.ok(Math.abs(measured / expected - 1) < WITHIN, `${what}: ${measured} instead of ${expected}`);
}

describe("an engine of one slot", () => {
  for (const [load, seed] of [
    [0.5, 1],
    [0.7, 2],
  ] as const)
    it(`makes requests wait as an M/G/1 queue at load ${load} (Pollaczek and Khinchine)`, () => {
      const sizes = [50, 150] as const;
      const meanMs = (sizes[0] + sizes[1]) / 2;
      const meanSquare = (sizes[0] ** 2 + sizes[1] ** 2) / 2;
      const perMs = load / meanMs;
      const arrivals = poisson(perMs, seed, (random) => ({
        promptTokens: sizes[random.next() < 0.5 ? 0 : 1],
        outputTokens: 1,
      }));
      // A millisecond per token.
      const { world } = run(
        alone({ ...ZERO, prefillMsPerKtok: 1_000 }, { maxRunning: 1, maxBatchedTokens: 1_000 }),
        fixed(arrivals),
      );
      const waits = world.records.map(({ scheduledMs, arrivedMs }) => scheduledMs - arrivedMs);
      near(mean(waits), (perMs * meanSquare) / (2 * (1 - load)), "mean wait");

      // Each single one, by Lindley's recursion.
      let waitMs = 0;
      for (const [at, record] of world.records.entries()) {
        assert.ok(Math.abs(waits[at]! - waitMs) < 1e-3, `request ${at} waited ${waits[at]} instead of ${waitMs}`);
        const gapMs = (world.records[at + 1]?.arrivedMs ?? 0) - record.arrivedMs;
        waitMs = Math.max(0, waitMs + record.promptTokens - gapMs);
      }
    });
});

describe("an engine whose steps take as long as its batch is large", () => {
  it("shares its time as an M/G/1 processor-sharing queue", () => {
    const load = 0.6;
    const stepMs = 1;
    const sizes = [40, 400] as const;
    const meanMs = stepMs * (0.8 * sizes[0] + 0.2 * sizes[1]);
    // The first token comes with the prompt, which is free here.
    const arrivals = poisson(load / meanMs, 3, (random) => ({
      promptTokens: 1,
      outputTokens: 1 + sizes[random.next() < 0.8 ? 0 : 1],
    }));
    const { world } = run(
      alone({ ...ZERO, stepMsPerSequence: stepMs }, { maxRunning: 1_000, maxBatchedTokens: 4_000 }),
      fixed(arrivals),
    );
    for (const size of sizes) {
      const ofSize = world.records.filter(({ outputTokens }) => outputTokens === 1 + size);
      // The mean response is the service time over what the others leave, whatever the distribution of sizes.
      near(
        mean(ofSize.map(({ endedMs, arrivedMs }) => endedMs - arrivedMs)),
        (stepMs * size) / (1 - load),
        `${size} tokens`,
      );
    }
  });
});
