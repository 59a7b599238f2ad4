import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { WAIT_PER_WORK } from "#src/scheduler/queueOrder.ts";
import { metrics } from "../fleet/samples.ts";
import { answered, endpoint, made, prefixed, profile, readyFleet, request, submit } from "./harness.ts";
import type { Submitted } from "./harness.ts";

/** A prompt like no other of `tokens`. */
function prompt(tokens: number, arrivedMs = 0) {
  const { identity } = request();
  return request({ identity: { ...identity, promptTokens: tokens, promptBytes: 4 * tokens }, arrivedMs });
}

function placedOn({ placement }: Submitted): string | null {
  return placement?.replica.id ?? null;
}

describe("a request that no replica could begin now", () => {
  test("waits here, where less work goes first, whenever it came", () => {
    const { scheduler } = made(readyFleet(1, 8), { policy: "kvasir" });
    const first = submit(scheduler, 0, prompt(20_000));
    const long = submit(scheduler, 1, prompt(30_000, 1));
    const short = submit(scheduler, 2, prompt(500, 2));
    assert.equal(placedOn(first), "r0");
    assert.equal(scheduler.depth.requests, 2);
    scheduler.firstToken(first.placement!, 2_000);
    assert.equal(placedOn(short), "r0");
    assert.equal(placedOn(long), null);
    scheduler.firstToken(short.placement!, 2_100);
    assert.equal(placedOn(long), "r0");
  });

  test("is overtaken by less work only for a time that follows from its own", () => {
    const { scheduler, fleet } = made(readyFleet(1, 8), { policy: "kvasir", limits: { maxWaitMs: 1e9 } });
    const [replica] = fleet.replicas();
    const first = submit(scheduler, 0, prompt(20_000));
    const long = submit(scheduler, 1, prompt(30_000, 1));
    const boundMs = WAIT_PER_WORK * replica!.latency.prefillMs(30_000, 0);
    // Somebody with less to do is always there when the replica gets ready.
    const all = [first];
    let nowMs = 1;
    for (let turn = 0; turn < 10_000 && placedOn(long) === null; turn++) {
      nowMs += 200;
      for (let at = 0; at < 2; at++) all.push(submit(scheduler, nowMs, prompt(1_000, nowMs)));
      const running = all.find(({ placement }) => placement !== null && !placement.finished);
      scheduler.finish(running!.placement!, answered(), nowMs);
    }
    assert.equal(placedOn(long), "r0");
    const overtaking = all.filter(({ placement }) => placement !== null).map((one) => one.request.arrivedMs);
    const last = Math.max(...overtaking);
    assert.ok(last > 5_000, "it was overtaken");
    assert.ok(last <= 1 + boundMs, `by one that came ${last} ms after it; the bound is ${boundMs}`);
  });

  test("waits for the replica that has its beginning, while another idles, if that is quicker", () => {
    const fleet = readyFleet(2, 8);
    const { scheduler } = made(fleet, { policy: "kvasir" });
    const begun = submit(scheduler, 0, prefixed(1, 1_200));
    const home = placedOn(begun);
    scheduler.firstToken(begun.placement!, 1_000);
    // It is busy now with a little that the other one has not either.
    const other = home === "r0" ? "r1" : "r0";
    const busy = submit(scheduler, 1_000, prompt(3_000, 1_000), { excluded: new Set([other]) });
    assert.equal(placedOn(busy), home);
    const next = submit(scheduler, 1_001, prefixed(1, 1_210, { arrivedMs: 1_001 }));
    assert.equal(placedOn(next), null, "it waits");
    scheduler.firstToken(busy.placement!, 1_150);
    assert.equal(placedOn(next), home);
    assert.ok(next.placement!.cachedTokensPredicted >= 16 * 1_200);
  });

  test("goes where nothing of it is if its replica takes longer than was thought", () => {
    const fleet = readyFleet(2, 8);
    const { scheduler } = made(fleet, { policy: "kvasir" });
    const begun = submit(scheduler, 0, prefixed(1, 400));
    const home = placedOn(begun);
    scheduler.firstToken(begun.placement!, 500);
    const other = home === "r0" ? "r1" : "r0";
    const busyElsewhere = submit(scheduler, 500, prompt(2_000, 500), { excluded: new Set([home!]) });
    const busy = submit(scheduler, 500, prompt(5_000, 500), { excluded: new Set([other]) });
    const waiting = Array.from({ length: 12 }, () => submit(scheduler, 501, prefixed(1, 420, { arrivedMs: 501 })));
    assert.ok(waiting.every((one) => placedOn(one) === null));
    // Others whom only that replica may serve are ahead of them.
    for (let at = 0; at < 3; at++) submit(scheduler, 502, prompt(60_000, 502), { excluded: new Set([other]) });
    scheduler.firstToken(busyElsewhere.placement!, 700);
    for (let nowMs = 700; nowMs < 60_000; nowMs += 500) {
      scheduler.tick(nowMs);
      for (const one of waiting)
        if (placedOn(one) === other && Number.isNaN(one.placement!.firstTokenMs))
          scheduler.firstToken(one.placement!, nowMs);
    }
    assert.ok(Number.isNaN(busy.placement!.firstTokenMs));
    assert.ok(waiting.some((one) => placedOn(one) === other));
  });

  test("is placed at once below saturation, where a queue of its own would only cost time", () => {
    const { scheduler } = made(readyFleet(4, 64), { policy: "kvasir" });
    for (let at = 0; at < 50; at++) {
      const one = submit(scheduler, at * 500, prompt(2_000, at * 500));
      assert.ok(one.placement !== null, `request ${at}`);
      assert.equal(one.placement.waitedMs, 0);
      scheduler.firstToken(one.placement, at * 500 + 150);
    }
  });

  test("keeps the replica in work: the next prompt is there before the last one's end is known", () => {
    const { scheduler, fleet } = made(readyFleet(1, 8), { policy: "kvasir" });
    const first = submit(scheduler, 0, prompt(20_000));
    const second = submit(scheduler, 1, prompt(20_000, 1));
    const doneMs = first.placement!.reservation.prefillMs;
    const wakeMs = scheduler.nextWakeMs();
    assert.ok(wakeMs !== null && wakeMs < doneMs);
    for (let nowMs = wakeMs; nowMs < doneMs; nowMs = Math.max(nowMs + 1, scheduler.nextWakeMs() ?? doneMs))
      scheduler.tick(nowMs);
    assert.equal(placedOn(second), "r0");
    assert.equal(fleet.replicas()[0]!.load.waitingSequences, 2);
  });
});

describe("when the replica that somebody waits for leaves", () => {
  test("they go to others, a bounded number at a time", () => {
    const fleet = readyFleet(2, 400);
    const { scheduler } = made(fleet, { policy: "kvasir", limits: { maxWaitMs: 1e9 } });
    const first = [submit(scheduler, 0, prompt(40_000)), submit(scheduler, 0, prompt(40_000))];
    const waiting = Array.from({ length: 300 }, () => submit(scheduler, 1, prompt(1_000, 1)));
    assert.equal(scheduler.depth.requests, 300);
    fleet.applyEndpoints("list", [endpoint("r1")], 2);
    let nowMs = 2;
    for (let turn = 0; turn < 10_000 && scheduler.depth.requests > 0; turn++) {
      nowMs = Math.max(nowMs + 1, scheduler.nextWakeMs() ?? nowMs);
      scheduler.tick(nowMs);
      for (const { placement } of [...first, ...waiting])
        if (placement !== null && nowMs > 2_000) scheduler.firstToken(placement, nowMs);
    }
    assert.deepEqual(new Set(waiting.map((one) => placedOn(one) ?? String(one.error))), new Set(["r1"]));
  });

  test("they hear of it if it was the last one", () => {
    const fleet = readyFleet(1, 8);
    const { scheduler } = made(fleet, { policy: "kvasir" });
    submit(scheduler, 0, prompt(40_000));
    const waiting = submit(scheduler, 1, prompt(1_000, 1));
    fleet.applyEndpoints("list", [], 2);
    scheduler.tick(3);
    assert.equal(waiting.error?.code, "model_not_found");
  });
});

describe("a replica that asks to be left alone", () => {
  test("is not waited for while there are others; if it is alone, it is", () => {
    const fleet = readyFleet(2, 8);
    const { scheduler } = made(fleet, { policy: "kvasir" });
    const first = submit(scheduler, 0, prompt(1_000));
    const asked = placedOn(first);
    scheduler.finish(first.placement!, { kind: "busy", status: 503, retryAfterMs: 1_000 }, 1);
    assert.notEqual(placedOn(submit(scheduler, 2, prompt(1_000, 2))), asked);
    fleet.applyEndpoints("list", [endpoint(asked!)], 3);
    fleet.applyProfile(asked!, profile(8), 3);
    const waiting = submit(scheduler, 4, prompt(1_000, 4));
    assert.equal(placedOn(waiting), null);
    scheduler.tick(1_100);
    assert.equal(placedOn(waiting), asked);
  });
});

describe("a replica that others keep busy", () => {
  test("is given requests all the same: who held them back would have the last place for ever", () => {
    const fleet = readyFleet(1, 64);
    const { scheduler } = made(fleet, { policy: "kvasir" });
    const [replica] = fleet.replicas();
    fleet.applyMetrics(replica!, metrics({ runningRequests: 20, waitingRequests: 30 }), 0);
    assert.ok(replica!.load.foreignPendingMs(0) > 100);
    const first = submit(scheduler, 1, prompt(20_000, 1));
    assert.equal(placedOn(first), "r0");
    const second = submit(scheduler, 2, prompt(1_000, 2));
    assert.equal(placedOn(second), null, "what we have there ourselves counts");
    scheduler.firstToken(first.placement!, 100);
    assert.equal(placedOn(second), "r0");
  });
});
