import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { SubmitOptions } from "#src/scheduler/ticket.ts";
import { FAILED, endpoint, made, profile, readyFleet, request, submit } from "./harness.ts";
import type { Submitted } from "./harness.ts";

const SLOTS = 8;

/** One replica that will hang, whose requests are given up as dispatch does it; another one may join. */
function setUp() {
  const { scheduler, fleet } = made(readyFleet(1, SLOTS));
  const [silent] = fleet.replicas();
  assert.ok(silent);
  let nowMs = 0;
  return {
    scheduler,
    fleet,
    place: (over: Partial<RouteRequest> = {}, options: SubmitOptions = {}): Submitted => {
      const submitted: Submitted = submit(scheduler, 0, over, {
        onLost: (why) => {
          assert.equal(why, "silent");
          submitted.lost++;
          scheduler.finish(submitted.placement!, FAILED, nowMs);
        },
        ...options,
      });
      return submitted;
    },
    hang: (atMs: number): void => {
      for (let probes = 0; probes < 3; probes++) silent.health.hung(atMs);
      assert.equal(silent.lifecycle.state, "unreachable");
    },
    join: (atMs: number): void => {
      fleet.applyEndpoints("list", [endpoint("r0"), endpoint("r1")], atMs);
      fleet.applyProfile("r1", profile(SLOTS), atMs);
      fleet.applyHealth("r1", "ready", atMs);
    },
    /** Lets time pass as `nextWakeMs` wants it. */
    passUntil: (toMs: number): void => {
      for (let wakeMs = scheduler.nextWakeMs(); wakeMs !== null && wakeMs <= toMs; wakeMs = scheduler.nextWakeMs()) {
        nowMs = Math.max(nowMs, wakeMs);
        scheduler.tick(nowMs);
      }
      nowMs = toMs;
    },
  };
}

describe("a replica that does not answer any more (13, 15)", () => {
  test("loses what it has sent nothing of; what has begun keeps its own limits", () => {
    const { scheduler, fleet, place, hang, join, passUntil } = setUp();
    const requests = [place(), place({ maxOutputTokens: 1 }, { streamed: false }), place()];
    scheduler.firstToken(requests[2]!.placement!, 5);
    join(0);
    passUntil(30_000);
    hang(30_000);
    passUntil(32_000);
    assert.deepEqual(
      requests.map(({ lost }) => lost),
      [1, 1, 0],
    );
    assert.equal(fleet.ledger.size, 1);
  });

  test("is waited for twice as long as prompts, and answers in one piece, should take", () => {
    const { place, hang, join, passUntil } = setUp();
    const stream = place({ identity: { ...request().identity, promptTokens: 90_000 } });
    const whole = place({ maxOutputTokens: 4_000 }, { streamed: false });
    const { reservation, loadAtBinding, replica } = whole.placement!;
    const streamMs = 2 * stream.placement!.reservation.prefillMs + 5_000;
    const outputMs = reservation.expectedOutputTokens * replica.latency.stepMs(0, 0);
    const wholeMs = 2 * (loadAtBinding.queueMs + reservation.prefillMs + outputMs) + 5_000;
    assert.ok(wholeMs - 1_000 > streamMs + 1_000 && streamMs > 8_000);
    join(0);
    hang(8_000);
    passUntil(streamMs);
    assert.deepEqual([stream.lost, whole.lost], [0, 0]);
    passUntil(streamMs + 1_000);
    assert.deepEqual([stream.lost, whole.lost], [1, 0]);
    passUntil(wholeMs);
    assert.equal(whole.lost, 0);
    passUntil(wholeMs + 1_000);
    assert.equal(whole.lost, 1);
  });

  test("keeps its requests while no other can take them, which are placed again as soon as one can", () => {
    const { scheduler, place, hang, join, passUntil } = setUp();
    const one = place();
    hang(30_000);
    passUntil(40_000);
    assert.equal(one.lost, 0, "the last replica is not given up");
    join(40_000);
    const others = Array.from({ length: SLOTS }, () => submit(scheduler, 40_000));
    passUntil(50_000);
    assert.equal(one.lost, 0, "the other is full");
    scheduler.finish(others[0]!.placement!, FAILED, 50_000);
    passUntil(51_000);
    assert.equal(one.lost, 1);
  });

  test("keeps a request that failed at every other", () => {
    const { place, hang, join, passUntil } = setUp();
    const one = place({}, { attempt: 2, excluded: new Set(["r1"]) });
    join(0);
    hang(30_000);
    passUntil(90_000);
    assert.equal(one.lost, 0);
  });

  test("keeps its requests when it answers again, and nobody has to wake", () => {
    const { scheduler, fleet, place, hang, join, passUntil } = setUp();
    const one = place();
    hang(30_000);
    fleet.applyHealth("r0", "ready", 31_000);
    join(31_000);
    assert.equal(scheduler.nextWakeMs(), null);
    passUntil(90_000);
    assert.equal(one.lost, 0);
  });

  test("asks for no waking when nothing is placed, and is forgotten when it is removed", () => {
    const { scheduler, fleet, place, hang, join } = setUp();
    join(0);
    hang(30_000);
    assert.equal(scheduler.nextWakeMs(), null);
    assert.equal(place().placement?.replica.id, "r1");
    assert.notEqual(scheduler.nextWakeMs(), null);
    fleet.applyEndpoints("list", [endpoint("r1")], 31_000);
    assert.equal(scheduler.nextWakeMs(), null);
  });
});
