import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Placement } from "#src/scheduler/placement.ts";
import type { Scheduler } from "#src/scheduler/scheduler.ts";
import { answered, made, readyFleet, request, submit } from "./harness.ts";

const STEP_TOKENS = 8_192;

/** The prior of these replicas (llama-3.1-8b on one H100), without its fixed part. */
function computeMs(promptTokens: number): number {
  const u = promptTokens / 1000;
  return 15.83 * u + 0.627 * u * u;
}

function place(scheduler: Scheduler, nowMs: number, promptTokens: number): Placement {
  return submit(scheduler, nowMs, { identity: { ...request().identity, promptTokens } }).placement!;
}

function end(scheduler: Scheduler, placement: Placement, promptTokens: number, nowMs: number): void {
  scheduler.finish(placement, answered({ promptTokens, cachedTokens: 0, outputTokens: 1 }), nowMs);
}

describe("learning prefill times from runs of prompts", () => {
  test("prompts that share a step are not taken for as many slow ones", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    const { latency } = fleet.replicas()[0]!;
    const before = latency.prefillMs(2_000, 0);
    for (let round = 0; round < 40; round++) {
      const startMs = round * 1_000;
      const burst = [0, 1, 2, 3].map(() => place(scheduler, startMs, 2_000));
      const endMs = startMs + 2.7 + 4 * computeMs(2_000);
      for (const placement of burst) scheduler.firstToken(placement, endMs);
      for (const placement of burst) end(scheduler, placement, 2_000, endMs);
    }
    assert.ok(latency.observations >= 40);
    assert.ok(Math.abs(latency.prefillMs(2_000, 0) / before - 1) < 0.1, `${before} → ${latency.prefillMs(2_000, 0)}`);
  });

  test("the decode steps that a long prompt rides on are not taken for slowness", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    const { latency } = fleet.replicas()[0]!;
    const others = Array.from({ length: 40 }, () => place(scheduler, 0, 8_000));
    for (const other of others) scheduler.firstToken(other, 100_000);
    const before = latency.prefillMs(40_000, 0);
    for (let round = 0; round < 40; round++) {
      const startMs = 200_000 + round * 10_000;
      const { decodingSequences, decodeKvTokens } = fleet.replicas()[0]!.load.at(startMs);
      const stepMs = latency.stepMs(decodingSequences, decodeKvTokens);
      const placement = place(scheduler, startMs, 40_000);
      const endMs = startMs + computeMs(40_000) + (0.5 + 40_000 / STEP_TOKENS) * stepMs;
      scheduler.firstToken(placement, endMs);
      end(scheduler, placement, 40_000, endMs);
    }
    assert.ok(latency.observations >= 40);
    assert.ok(Math.abs(latency.prefillMs(40_000, 0) / before - 1) < 0.05);
  });

  test("a wait for memory is not taken for slowness", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    const { latency } = fleet.replicas()[0]!;
    // Of a million tokens of KV memory.
    for (let at = 0; at < 10; at++) scheduler.firstToken(place(scheduler, 0, 90_000), 100_000);
    const before = latency.observations;
    for (let at = 1; at <= 10; at++) {
      const startMs = at * 200_000;
      const placement = place(scheduler, startMs, 20_000);
      scheduler.firstToken(placement, startMs + 60_000);
      end(scheduler, placement, 20_000, startMs + 60_000);
    }
    assert.equal(latency.observations, before);
  });

  test("a replica that is never without prompts is learned all the same", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    const { latency } = fleet.replicas()[0]!;
    const before = latency.prefillMs(4_000, 0);
    const waiting = [place(scheduler, 0, 4_000), place(scheduler, 0, 4_000)];
    let nowMs = 0;
    for (let at = 0; at < 2_000; at++) {
      nowMs += 2 * computeMs(4_000);
      const done = waiting.shift()!;
      scheduler.firstToken(done, nowMs);
      waiting.push(place(scheduler, nowMs, 4_000));
      end(scheduler, done, 4_000, nowMs);
    }
    assert.ok(Math.abs(latency.prefillMs(4_000, 0) / before - 2) < 0.2, `${before} → ${latency.prefillMs(4_000, 0)}`);
  });

  test("prompts that were given up tell nothing, nor do those beside them", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    const { latency } = fleet.replicas()[0]!;
    for (let at = 0; at < 10; at++) {
      const [kept, gone] = [place(scheduler, at * 1_000, 2_000), place(scheduler, at * 1_000, 2_000)];
      scheduler.finish(gone, { kind: "client_gone" }, at * 1_000 + 1);
      scheduler.firstToken(kept, at * 1_000 + 500);
      end(scheduler, kept, 2_000, at * 1_000 + 500);
    }
    assert.equal(latency.observations, 0);
  });
});
