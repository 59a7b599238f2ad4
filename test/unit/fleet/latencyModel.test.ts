import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { SeededRandom } from "#src/determinism/random.ts";
import type { Random } from "#src/determinism/random.ts";
import { LatencyModel } from "#src/fleet/latencyModel.ts";
import { PLAUSIBLE_FACTOR } from "#src/fleet/scaledRegression.ts";
import { GENERIC_PRIOR, PRIORS, prefillMs, stepMs } from "#src/hardware/stepTimes.ts";
import type { StepTimes } from "#src/hardware/stepTimes.ts";

const TRUTH: StepTimes = PRIORS.get("qwen3-32b/h200_tp2") ?? GENERIC_PRIOR;

function times(by: number, of: StepTimes = TRUTH): StepTimes {
  const scaled = Object.entries(of).map(([name, value]: [string, number]) => [name, value * by]);
  return Object.fromEntries(scaled) as StepTimes;
}

/** Multiplies by something between 0.8 and 1.2. */
function noisy(value: number, random: Random): number {
  return value * (0.8 + 0.4 * random.next());
}

function somePrompt(random: Random): { newTokens: number; cachedTokens: number } {
  return { newTokens: 50 + Math.floor(8_000 * random.next() ** 2), cachedTokens: Math.floor(6_000 * random.next()) };
}

function observePrefills(model: LatencyModel, truth: StepTimes, count: number, random: Random): void {
  for (let at = 0; at < count; at++) {
    const { newTokens, cachedTokens } = somePrompt(random);
    const queueMs = 30 * random.next();
    const elapsedMs = queueMs + noisy(prefillMs(truth, newTokens, cachedTokens), random);
    model.observePrefill(newTokens, cachedTokens, elapsedMs, queueMs);
  }
}

function observeSteps(model: LatencyModel, truth: StepTimes, count: number, random: Random): void {
  for (let at = 0; at < count; at++) {
    const sequences = 1 + random.below(64);
    const kvTokens = sequences * (200 + random.below(3_000));
    model.observeStep(sequences, kvTokens, noisy(stepMs(truth, sequences, kvTokens), random));
  }
}

/** The largest relative error over prompts and batches as they occur. */
function worstError(model: LatencyModel, truth: StepTimes, random: Random): { prefill: number; step: number } {
  let prefill = 0;
  let step = 0;
  for (let at = 0; at < 200; at++) {
    const { newTokens, cachedTokens } = somePrompt(random);
    const prefillTruth = prefillMs(truth, newTokens, cachedTokens);
    prefill = Math.max(prefill, Math.abs(model.prefillMs(newTokens, cachedTokens) / prefillTruth - 1));
    const sequences = 1 + random.below(64);
    const kvTokens = sequences * (200 + random.below(3_000));
    step = Math.max(step, Math.abs(model.stepMs(sequences, kvTokens) / stepMs(truth, sequences, kvTokens) - 1));
  }
  return { prefill, step };
}

function assertClose(model: LatencyModel, truth: StepTimes, within: number, random: Random): void {
  const worst = worstError(model, truth, random);
  assert.ok(worst.prefill < within, `prefill is off by ${worst.prefill}`);
  assert.ok(worst.step < within, `step is off by ${worst.step}`);
}

describe("the latency model", () => {
  it("predicts its prior before it has seen anything, and says so", () => {
    const model = new LatencyModel(TRUTH, "prior");
    assert.equal(model.basis, "prior");
    assert.equal(model.prefillMape, null);
    assert.equal(model.prefillMs(3_000, 1_000), prefillMs(TRUTH, 3_000, 1_000));
    assert.equal(model.stepMs(10, 20_000), stepMs(TRUTH, 10, 20_000));
    assert.equal(model.prefillMs(0, 5_000), 0);
  });

  it("learns an unknown machine from noisy traffic, starting from the generic prior", () => {
    for (const [name, truth] of PRIORS) {
      const random = new SeededRandom(7);
      const model = new LatencyModel(GENERIC_PRIOR, "generic");
      observePrefills(model, truth, 400, random);
      observeSteps(model, truth, 400, random);
      const worst = worstError(model, truth, random);
      assert.ok(worst.prefill < 0.35 && worst.step < 0.35, `${name}: ${JSON.stringify(worst)}`);
      assert.equal(model.basis, "learned");
      assert.ok((model.prefillMape ?? 1) < 0.2 && (model.stepMape ?? 1) < 0.2, `${name}: its own error`);
    }
  });

  it("finds a machine made twice as slow within some dozens of observations, and its recovery", () => {
    const random = new SeededRandom(1);
    const model = new LatencyModel(TRUTH, "prior");
    observePrefills(model, TRUTH, 200, random);
    observeSteps(model, TRUTH, 200, random);
    assertClose(model, TRUTH, 0.2, random);
    observePrefills(model, times(2), 30, random);
    observeSteps(model, times(2), 30, random);
    assertClose(model, times(2), 0.25, random);
    observePrefills(model, TRUTH, 30, random);
    observeSteps(model, TRUTH, 30, random);
    assertClose(model, TRUTH, 0.25, random);
  });

  it("is not wrecked by stalls", () => {
    const random = new SeededRandom(2);
    const model = new LatencyModel(TRUTH, "prior");
    for (let at = 0; at < 50; at++) {
      observePrefills(model, TRUTH, 19, random);
      observeSteps(model, TRUTH, 19, random);
      observePrefills(model, times(30), 1, random);
      observeSteps(model, times(30), 1, random);
      assertClose(model, TRUTH, 0.35, random);
    }
  });

  it("survives a queue share that was guessed too high", () => {
    const model = new LatencyModel(TRUTH, "prior");
    for (let at = 0; at < 20; at++) model.observePrefill(2_000, 0, prefillMs(TRUTH, 2_000, 0), 1e9);
    assert.ok(model.prefillMs(2_000, 0) > 0);
  });

  it("goes back to what its peers are like while nothing is observed", () => {
    const random = new SeededRandom(3);
    const model = new LatencyModel(TRUTH, "prior");
    observePrefills(model, times(3), 60, random);
    observeSteps(model, times(3), 60, random);
    const slowMs = model.stepMs(10, 20_000);
    model.relax(1, 1, 0.5);
    assert.ok(model.stepMs(10, 20_000) < slowMs * 0.7);
    for (let at = 0; at < 20; at++) model.relax(1, 1, 0.5);
    assert.ok(Math.abs(model.prefillSlowness - 1) < 0.01 && Math.abs(model.stepSlowness - 1) < 0.01);
  });

  it("predicts positive finite times within the plausible range, whatever it is told", () => {
    const anything = fc.oneof(
      fc.double(),
      fc.constantFrom(0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e-12, 1e12),
      fc.double({ min: 0, max: 1e5, noNaN: true }),
    );
    const observation = fc.tuple(fc.boolean(), anything, anything, anything, anything);
    fc.assert(
      fc.property(fc.array(observation, { maxLength: 100 }), (observations) => {
        const model = new LatencyModel(TRUTH, "prior");
        for (const [isPrefill, first, second, third, fourth] of observations)
          if (isPrefill) model.observePrefill(first, second, third, fourth);
          else model.observeStep(first, second, third);
        const factor = PLAUSIBLE_FACTOR * 1.001;
        const step = model.stepMs(8, 16_000) / stepMs(TRUTH, 8, 16_000);
        const prefill = model.prefillMs(1_000, 500) / prefillMs(TRUTH, 1_000, 500);
        assert.ok(step >= 1 / factor && step <= factor, `step ${step}`);
        assert.ok(prefill >= 1 / factor && prefill <= factor, `prefill ${prefill}`);
        assert.ok((model.stepMape ?? 0) >= 0);
      }),
      { numRuns: 300 },
    );
  });

  it("can learn a coefficient whose prior is zero", () => {
    const flat = { ...TRUTH, prefillMsPerKtok2: 0 };
    const model = new LatencyModel(flat, "prior");
    assert.ok(Math.abs(model.prefillMs(4_000, 0) / prefillMs(flat, 4_000, 0) - 1) < 0.01);
    for (const value of Object.values(model.coefficients)) assert.ok(value > 0);
  });
});
