import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { Scheduler } from "#src/scheduler/scheduler.ts";
import { FAILED, MODEL, answered, made, prefixed, readyFleet, request, submit } from "./harness.ts";

/** Runs one streamed request on an engine that is `slowness` times its prior, and returns when it ended. */
function stream(scheduler: Scheduler, startMs: number, slowness: number, promptTokens: number): number {
  const identity: RouteRequest["identity"] = { ...request().identity, promptTokens };
  const { placement } = submit(scheduler, startMs, { identity });
  const truth = { prefillMs: priorPrefillMs(promptTokens) * slowness, stepMs: 7 * slowness };
  let nowMs = startMs + truth.prefillMs;
  scheduler.firstToken(placement!, nowMs);
  for (let token = 2; token <= 40; token++) {
    nowMs += truth.stepMs;
    scheduler.progress(placement!, token, nowMs);
  }
  scheduler.finish(placement!, answered({ promptTokens, outputTokens: 40 }), nowMs);
  return nowMs;
}

/** The prior of these replicas (llama-3.1-8b on one H100). */
function priorPrefillMs(promptTokens: number): number {
  const u = promptTokens / 1000;
  return 2.7 + 15.83 * u + 0.627 * u * u;
}

describe("times", () => {
  test("an engine that becomes twice as slow is found from traffic, and that it recovers, too", () => {
    const { scheduler, fleet } = made(readyFleet(1, 8));
    const replica = fleet.replicas()[0]!;
    let nowMs = 0;
    const run = (slowness: number) => {
      for (let at = 0; at < 60; at++) nowMs = stream(scheduler, nowMs + 5, slowness, 500 + (at % 5) * 700) + 5;
      return { prefillMs: replica.latency.prefillMs(2_000, 0), stepMs: replica.latency.stepMs(1, 2_000) };
    };
    const [usual, slow, again] = [run(1), run(2), run(1)];
    assert.ok(Math.abs(slow.prefillMs / usual.prefillMs - 2) < 0.3, `prefill ${usual.prefillMs} → ${slow.prefillMs}`);
    assert.ok(Math.abs(slow.stepMs / usual.stepMs - 2) < 0.3, `step ${usual.stepMs} → ${slow.stepMs}`);
    assert.ok(Math.abs(again.prefillMs / usual.prefillMs - 1) < 0.2, `prefill ${usual.prefillMs} → ${again.prefillMs}`);
    assert.ok(Math.abs(again.stepMs / usual.stepMs - 1) < 0.2, `step ${usual.stepMs} → ${again.stepMs}`);
  });

  test("a length guessed from text is not taken for a slow or a quick engine, where the engine tells the true one", () => {
    const { scheduler, fleet } = made(readyFleet(1, 8));
    const { latency } = fleet.replicas()[0]!;
    const before = latency.prefillMs(2_000, 0);
    for (let at = 0; at < 60; at++) {
      const nowMs = at * 1_000;
      // Half or twice of what it is.
      const identity = { ...request().identity, promptTokens: at % 2 === 0 ? 1_000 : 4_000 };
      const { placement } = submit(scheduler, nowMs, { identity });
      scheduler.firstToken(placement!, nowMs + priorPrefillMs(2_000));
      scheduler.finish(placement!, answered({ promptTokens: 2_000, cachedTokens: 0, outputTokens: 1 }), nowMs + 500);
    }
    assert.ok(latency.observations >= 60);
    assert.ok(Math.abs(latency.prefillMs(2_000, 0) / before - 1) < 0.05, `${before} → ${latency.prefillMs(2_000, 0)}`);
  });

  test("waiting behind other prompts is not taken for slowness", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    const { latency } = fleet.replicas()[0]!;
    const before = latency.prefillMs(2_000, 0);
    let nowMs = 0;
    for (let round = 0; round < 40; round++) {
      const identity = { ...request().identity, promptTokens: 2_000 };
      const burst = Array.from({ length: 6 }, () => submit(scheduler, nowMs, { identity }).placement!);
      for (const placement of burst) {
        nowMs += priorPrefillMs(2_000);
        scheduler.firstToken(placement, nowMs);
      }
      for (const placement of burst) scheduler.finish(placement, answered({ outputTokens: 1 }), nowMs);
    }
    assert.ok(latency.observations > 0);
    assert.ok(Math.abs(latency.prefillMs(2_000, 0) / before - 1) < 0.1, `${before} → ${latency.prefillMs(2_000, 0)}`);
  });

  test("steps that carried somebody's prompt are not taken for slow steps", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    const { latency } = fleet.replicas()[0]!;
    const { placement } = submit(scheduler, 0);
    scheduler.firstToken(placement!, 20);
    const before = latency.observations;
    for (let token = 2, nowMs = 20; token <= 200; token++) {
      nowMs += 50;
      if (token % 4 === 0) {
        const other = submit(scheduler, nowMs).placement!;
        scheduler.finish(other, { kind: "client_gone" }, nowMs + 1);
      }
      scheduler.progress(placement!, token, nowMs);
    }
    assert.equal(latency.observations, before);
  });

  test("a stream held up by its client is not taken for slow steps", () => {
    const { scheduler, fleet } = made(readyFleet(1, 8));
    const { latency } = fleet.replicas()[0]!;
    const { placement } = submit(scheduler, 0);
    scheduler.firstToken(placement!, 20);
    const before = latency.observations;
    scheduler.progress(placement!, 4, 40);
    scheduler.heldUp(placement!);
    scheduler.progress(placement!, 9, 9_000);
    assert.equal(latency.observations, before);
    scheduler.progress(placement!, 17, 9_060);
    assert.equal(latency.observations, before + 1);
  });

  test("parallel streams report each step once", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    const { latency } = fleet.replicas()[0]!;
    const placements = Array.from({ length: 20 }, () => submit(scheduler, 0).placement!);
    for (const placement of placements) scheduler.firstToken(placement, 400);
    const before = latency.observations;
    for (let token = 2; token <= 81; token++)
      for (const placement of placements) scheduler.progress(placement, token, 400 + token * 8);
    const seen = latency.observations - before;
    assert.ok(seen >= 4 && seen <= 10, `${seen} observations of 80 steps in windows of 8`);
  });

  test("answers in one piece count as decoding once their prompt should be computed", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    const { load } = fleet.replicas()[0]!;
    const unary = submit(scheduler, 0, {}, { streamed: false });
    submit(scheduler, 0);
    assert.equal(load.waitingSequences, 2);
    submit(scheduler, 5_000);
    assert.equal(load.waitingSequences, 2, "the streamed one still waits for its token, the other does not");
    scheduler.finish(unary.placement!, answered({ outputTokens: 64 }), 5_100);
    assert.equal(load.decodingSequences, 0);
  });

  test("an embedding's whole time is its prefill", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    const { latency } = fleet.replicas()[0]!;
    const { placement } = submit(scheduler, 0, { generates: false }, { streamed: false });
    scheduler.finish(placement!, answered({ promptTokens: 1_000 }), 40);
    assert.equal(latency.observations, 1);
  });
});

describe("health", () => {
  const cases = [
    ["answered 200", answered(), "ready", 0],
    ["answered 422 (10)", answered({}, 422), "ready", 0],
    ["answered 501: no such route", answered({}, 501), "ready", 0],
    ["answered 500", answered({}, 500), "ready", 1],
    ["failed", FAILED, "ready", 1],
    ["client gone (1)", { kind: "client_gone" }, "ready", 0],
    ["shutdown", { kind: "shutdown" }, "ready", 0],
  ] as const;
  for (const [name, outcome, state, failures] of cases)
    test(name, () => {
      const { scheduler, fleet } = made(readyFleet(1, 4));
      scheduler.finish(submit(scheduler, 0).placement!, outcome, 10);
      const { lifecycle } = fleet.replicas()[0]!.health;
      assert.equal(lifecycle.state, state);
      assert.equal(lifecycle.state === "ready" && lifecycle.failures, failures);
    });

  test("a replica that fails fast is not the least loaded one (11)", () => {
    const { scheduler, fleet } = made(readyFleet(2, 64));
    const onBad: string[] = [];
    let nowMs = 0;
    for (let at = 0; at < 60; at++) {
      nowMs += 10;
      const { placement, request: asked } = submit(scheduler, nowMs);
      if (placement!.replica.id !== "r0") continue;
      onBad.push(asked.id);
      scheduler.finish(placement!, FAILED, nowMs + 1);
    }
    assert.equal(fleet.byId("r0")!.health.lifecycle.state, "quarantined");
    assert.ok(onBad.length <= 4, `${onBad.length} requests went there`);
    nowMs += 1_500;
    let trial = submit(scheduler, nowMs);
    for (let at = 0; at < 5 && trial.placement?.replica.id !== "r0"; at++) trial = submit(scheduler, nowMs);
    assert.equal(trial.placement?.replica.id, "r0");
    scheduler.cancel(trial.ticket, nowMs);
    assert.notEqual(fleet.byId("r0")!.health.lifecycle.state, "half_open", "a trial without a verdict ends");
  });
});

describe("proof of life", () => {
  test("a first token that is only presumed proves nothing (12)", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    const { health } = fleet.replicas()[0]!;
    submit(scheduler, 0, {}, { streamed: false });
    submit(scheduler, 60_000, {}, { streamed: false });
    for (let at = 0; at < 10; at++) health.hung(60_000 + at);
    assert.equal(health.lifecycle.state, "unreachable");
  });

  test("tokens that flow do (12)", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    const { health } = fleet.replicas()[0]!;
    const { placement } = submit(scheduler, 0);
    scheduler.firstToken(placement!, 59_000);
    for (let at = 0; at < 10; at++) health.hung(60_000 + at);
    assert.equal(health.lifecycle.state, "ready");
  });
});

describe("cache and lengths", () => {
  test("a prompt is expected where it went, at once and after its end", () => {
    const { scheduler } = made(readyFleet(4, 8), { policy: "kvasir" });
    const first = submit(scheduler, 0, prefixed(7, 60));
    const sibling = submit(scheduler, 1, prefixed(7, 60));
    assert.equal(first.placement?.cachedTokensPredicted, 0);
    scheduler.finish(sibling.placement!, { kind: "client_gone" }, 2);
    scheduler.firstToken(first.placement, 100);
    scheduler.finish(first.placement, answered({ promptTokens: 961, cachedTokens: 0, outputTokens: 5 }), 200);
    const second = submit(scheduler, 300, prefixed(7, 60));
    assert.equal(second.placement?.replica.id, first.placement?.replica.id);
    assert.equal(second.placement?.cachedTokensPredicted, 960);
  });

  test("a prompt that ended before its first token is not expected anywhere", () => {
    const { scheduler, fleet } = made(readyFleet(1, 8));
    scheduler.finish(submit(scheduler, 0, prefixed(7, 60)).placement!, FAILED, 1);
    assert.equal(fleet.index.heldBy(0), 0);
    assert.equal(fleet.index.pending, 0);
  });

  test("an engine that never finds what it should have is believed less", () => {
    const { scheduler } = made(readyFleet(1, 8));
    let predicted = 0;
    for (let at = 0; at < 10; at++) {
      const { placement } = submit(scheduler, at * 1_000, prefixed(7, 60));
      predicted = placement!.cachedTokensPredicted;
      scheduler.firstToken(placement!, at * 1_000 + 50);
      scheduler.finish(placement!, answered({ cachedTokens: 0, outputTokens: 3 }), at * 1_000 + 90);
    }
    assert.ok(predicted < 900, `${predicted} of 961 tokens still expected`);
  });

  test("output lengths are learned per sequence, from answers that ended well", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    for (let at = 0; at < 40; at++) {
      const wide = submit(scheduler, at, { sequences: 2, maxOutputTokens: null });
      scheduler.finish(wide.placement!, answered({ outputTokens: 80 }), at);
      const gone = submit(scheduler, at, { maxOutputTokens: null });
      scheduler.progress(gone.placement!, 5_000, at);
      scheduler.finish(gone.placement!, { kind: "client_gone" }, at);
    }
    assert.equal(fleet.outputLengths.expect(MODEL, "anonymous", null), 40);
  });

  test("bytes per token are learned from what answers report", () => {
    const { scheduler, fleet } = made(readyFleet(1, 64));
    for (let at = 0; at < 200; at++)
      scheduler.finish(submit(scheduler, at).placement!, answered({ promptTokens: 2_000 }), at);
    assert.ok(Math.abs(fleet.tokenDensity.bytesPerToken(MODEL) - 2) < 0.2);
  });
});
