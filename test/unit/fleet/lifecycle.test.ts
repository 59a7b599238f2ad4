import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { Health } from "#src/fleet/health.ts";
import { LIFECYCLE_LIMITS, transition } from "#src/fleet/lifecycle.ts";
import type { Lifecycle, LifecycleEvent } from "#src/fleet/lifecycle.ts";

function readyHealth(nowMs = 0): Health {
  const health = new Health(nowMs);
  health.apply({ kind: "probe_ready" }, nowMs);
  return health;
}

/** A call, so that one assertion on the state does not narrow the type for the next. */
function stateOf(health: Health): Lifecycle["state"] {
  return health.lifecycle.state;
}

const EVENTS: readonly LifecycleEvent[] = [
  { kind: "probe_ready" },
  { kind: "probe_loading" },
  { kind: "probe_refused" },
  { kind: "probe_hung", alive: true },
  { kind: "probe_hung", alive: false },
  { kind: "request_bound" },
  { kind: "request_answered" },
  { kind: "request_busy" },
  { kind: "request_failed" },
  { kind: "request_dropped" },
  { kind: "restarted" },
  { kind: "drain" },
  { kind: "resume" },
];

describe("a replica's lifecycle", () => {
  it("begins unknown and takes requests only once it is ready", () => {
    const health = new Health(0);
    assert.equal(health.routable(0), false);
    health.apply({ kind: "probe_loading" }, 1);
    assert.equal(health.routable(1), false);
    health.apply({ kind: "probe_ready" }, 2);
    assert.equal(health.routable(2), true);
  });

  it("quarantines after failures in a row, and not before", () => {
    const health = readyHealth();
    for (let at = 1; at < LIFECYCLE_LIMITS.failuresToQuarantine; at++) health.failed(at);
    assert.equal(stateOf(health), "ready");
    health.answered(5);
    for (let at = 1; at < LIFECYCLE_LIMITS.failuresToQuarantine; at++) health.failed(5 + at);
    assert.equal(stateOf(health), "ready");
    health.failed(10);
    assert.equal(stateOf(health), "quarantined");
  });

  it("quarantines a replica that fails two of three requests, though never often in a row", () => {
    const health = readyHealth();
    for (let round = 0; round < 20 && stateOf(health) === "ready"; round++) {
      health.failed(round);
      health.failed(round);
      health.answered(round);
    }
    assert.equal(stateOf(health), "quarantined");
  });

  it("lets one trial through when the time is up, and doubles the time if that fails too", () => {
    const health = readyHealth();
    for (let at = 0; at < LIFECYCLE_LIMITS.failuresToQuarantine; at++) health.failed(0);
    const { quarantineBaseMs } = LIFECYCLE_LIMITS;
    assert.equal(health.routable(quarantineBaseMs - 1), false);
    assert.equal(health.bound(quarantineBaseMs - 1), false);
    assert.equal(health.routable(quarantineBaseMs), true);
    assert.equal(health.bound(quarantineBaseMs), true);
    assert.equal(health.routable(quarantineBaseMs), false, "one trial at a time");
    health.failed(quarantineBaseMs + 10);
    assert.equal(health.routable(quarantineBaseMs + 10 + 2 * quarantineBaseMs - 1), false);
    assert.equal(health.routable(quarantineBaseMs + 10 + 2 * quarantineBaseMs), true);
    health.bound(5_000);
    health.answered(5_010);
    assert.equal(stateOf(health), "ready");
  });

  it("bounds the quarantine however often the trial fails", () => {
    const health = readyHealth();
    for (let at = 0; at < LIFECYCLE_LIMITS.failuresToQuarantine; at++) health.failed(0);
    let nowMs = 0;
    for (let round = 0; round < 50; round++) {
      nowMs += LIFECYCLE_LIMITS.quarantineMaxMs;
      assert.equal(health.bound(nowMs), true);
      health.failed(nowMs);
    }
  });

  it("is not brought out of quarantine by a health route that is fine", () => {
    const health = readyHealth();
    for (let at = 0; at < LIFECYCLE_LIMITS.busyToQuarantine; at++)
      health.busy({ retryAfterMs: null, others: 0, boundMs: at }, at);
    assert.equal(stateOf(health), "quarantined");
    health.apply({ kind: "probe_ready" }, 100);
    assert.equal(stateOf(health), "quarantined");
  });

  it("takes a single 429 or 503 as back-pressure with the engine's own Retry-After, bounded", () => {
    const health = readyHealth();
    health.busy({ retryAfterMs: 2_000, others: 0, boundMs: 0 }, 0);
    assert.equal(stateOf(health), "ready");
    assert.equal(health.held(1_999), true);
    assert.equal(health.held(2_000), false);
    health.answered(2_001);
    health.busy({ retryAfterMs: 86_400_000, others: 0, boundMs: 3_000 }, 3_000);
    assert.equal(health.held(3_000 + 29_999), true);
    assert.equal(health.held(3_000 + 30_000), false);
  });

  it("holds longer each time an engine refuses without saying for how long", () => {
    const health = readyHealth();
    health.busy({ retryAfterMs: null, others: 0, boundMs: 0 }, 0);
    const firstMs = health.heldUntilMs;
    health.busy({ retryAfterMs: null, others: 0, boundMs: firstMs }, firstMs);
    assert.ok(health.heldUntilMs - firstMs > firstMs);
  });

  it("takes a burst into a full engine for one refusal", () => {
    const health = readyHealth();
    const burst = LIFECYCLE_LIMITS.busyToQuarantine * 3;
    for (let at = 1; at <= burst; at++) health.busy({ retryAfterMs: null, others: burst - at, boundMs: 0 }, at);
    assert.equal(stateOf(health), "ready");
    const again = LIFECYCLE_LIMITS.busyToQuarantine;
    for (let at = 1; at <= again; at++) health.busy({ retryAfterMs: null, others: 0, boundMs: at * 1000 }, at * 1000);
    assert.equal(stateOf(health), "quarantined");
  });

  it("finds slots that nobody told of: down to what it had when it refused, up by one per round of answers", () => {
    const health = readyHealth();
    assert.equal(health.window, Number.POSITIVE_INFINITY);
    health.answered(0);
    assert.equal(health.window, Number.POSITIVE_INFINITY);
    health.busy({ retryAfterMs: null, others: 2, boundMs: 1 }, 1);
    assert.equal(health.window, 2);
    health.answered(2);
    assert.equal(health.window, 2);
    health.answered(3);
    health.answered(4);
    assert.equal(health.window, 3);
    health.busy({ retryAfterMs: null, others: 0, boundMs: 5 }, 5);
    assert.equal(health.window, 1);
    health.restarted(6);
    assert.equal(health.window, Number.POSITIVE_INFINITY);
  });

  it("takes a replica whose tokens flow for alive, whatever its health route does", () => {
    const health = readyHealth();
    for (let at = 0; at < 10; at++) {
      health.tokenSeen(at * 5_000);
      health.hung(at * 5_000 + 4_000);
    }
    assert.equal(stateOf(health), "ready");
    for (let at = 0; at < LIFECYCLE_LIMITS.hungProbesToUnreachable; at++) health.hung(100_000 + at);
    assert.equal(stateOf(health), "unreachable");
    health.answered(100_010);
    assert.equal(stateOf(health), "ready", "an answer is the better proof");
  });

  it("frees the trial's place when the trial ends without a verdict", () => {
    const health = readyHealth();
    for (let at = 0; at < LIFECYCLE_LIMITS.failuresToQuarantine; at++) health.failed(0);
    health.bound(10_000);
    health.apply({ kind: "request_dropped" }, 10_001);
    assert.equal(health.routable(10_001), true);
  });

  it("drains until it is told to resume, whatever else happens", () => {
    const draining: Lifecycle = { state: "draining", sinceMs: 0 };
    for (const event of EVENTS)
      assert.equal(transition(draining, event, 1).state, event.kind === "resume" ? "probing" : "draining");
  });

  it("can always come back, by probes and trials", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...EVENTS), { maxLength: 60 }), (events) => {
        const health = new Health(0);
        let nowMs = 0;
        for (const event of events) health.apply(event, (nowMs += 10));
        nowMs += LIFECYCLE_LIMITS.quarantineMaxMs;
        if (stateOf(health) === "draining") health.apply({ kind: "resume" }, nowMs);
        health.apply({ kind: "probe_ready" }, nowMs);
        if (health.bound(nowMs) || stateOf(health) === "half_open") health.answered(nowMs);
        assert.equal(stateOf(health), "ready");
      }),
    );
  });
});
