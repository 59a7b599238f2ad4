import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ClassTable } from "#src/scheduler/classes.ts";
import { FAILED, answered, endpoint, made, ownLoad, profile, readyFleet, request, submit } from "./harness.ts";

describe("while there is room", () => {
  test("a request is bound before submit returns, and its load counts from then on", () => {
    const { scheduler, fleet } = made(readyFleet(2, 4));
    const one = submit(scheduler, 10);
    assert.equal(one.results.length, 1);
    assert.equal(one.placement?.waitedMs, 0);
    assert.equal(
      fleet.replicas().reduce((sum, { load }) => sum + load.requests, 0),
      1,
    );
    assert.equal(scheduler.nextWakeMs(), null);
  });

  test("eight requests at one moment spread over the replicas (27, 28)", () => {
    const { scheduler, fleet } = made(readyFleet(4, 8), { policy: "kvasir" });
    const submitted = Array.from({ length: 8 }, () =>
      submit(scheduler, 0, { identity: { ...request().identity, promptTokens: 32_000 }, maxOutputTokens: 1 }),
    );
    const counts = (): number[] => fleet.replicas().map(({ load }) => load.requests);
    assert.deepEqual(counts(), [1, 1, 1, 1]);
    // The others wait here, one for each replica, until its prompt is computed.
    assert.equal(scheduler.depth.requests, 4);
    for (const { placement } of submitted) if (placement !== null) scheduler.firstToken(placement, 4_000);
    assert.deepEqual(counts(), [2, 2, 2, 2]);
  });

  test("each attempt has a decision of its own", () => {
    const { scheduler } = made(readyFleet(2, 4));
    const first = submit(scheduler, 0);
    scheduler.finish(first.placement!, FAILED, 1);
    const again = submit(scheduler, 1, first.request, { attempt: 2, excluded: new Set([first.placement!.replica.id]) });
    assert.notEqual(again.placement?.replica.id, first.placement?.replica.id);
    assert.notEqual(again.placement?.decision.id, first.placement?.decision.id);
    assert.equal(again.placement?.decision.attempt, 2);
    assert.equal(again.placement?.decision.requestId, first.request.id);
  });
});

describe("when every slot is taken", () => {
  test("a request waits and is bound when one ends (31)", () => {
    const { scheduler } = made(readyFleet(1, 1));
    const running = submit(scheduler, 0);
    const waiting = submit(scheduler, 5);
    assert.equal(waiting.results.length, 0);
    assert.deepEqual(scheduler.depth, { requests: 1, bytes: 100 });
    scheduler.finish(running.placement!, answered(), 25);
    assert.equal(waiting.placement?.waitedMs, 20);
    assert.deepEqual(scheduler.depth, { requests: 0, bytes: 0 });
  });

  test("it is bound when a replica joins", () => {
    const { scheduler, fleet } = made(readyFleet(1, 1));
    submit(scheduler, 0);
    const waiting = submit(scheduler, 0);
    fleet.applyEndpoints("file", [endpoint("new")], 10);
    fleet.applyProfile("new", profile(1), 10);
    fleet.applyHealth("new", "ready", 10);
    assert.ok(scheduler.nextWakeMs()! <= 60, "somebody who waits is looked at again soon");
    scheduler.tick(scheduler.nextWakeMs()!);
    assert.equal(waiting.placement?.replica.id, "new");
  });

  test("a busy engine holds everybody back until the time it asked for", () => {
    const { scheduler } = made(readyFleet(1, 4));
    const refused = submit(scheduler, 0);
    scheduler.finish(refused.placement!, { kind: "busy", status: 503, retryAfterMs: 1_000 }, 1);
    const waiting = submit(scheduler, 2, refused.request, { attempt: 2 });
    scheduler.tick(900);
    assert.equal(waiting.results.length, 0);
    scheduler.tick(1_002);
    assert.ok(waiting.placement);
  });

  test("a request for many sequences is not overtaken by smaller ones for ever", () => {
    const { scheduler } = made(readyFleet(1, 16));
    const running = Array.from({ length: 16 }, () => submit(scheduler, 0));
    const wide = submit(scheduler, 1, { sequences: 30 });
    const narrow = submit(scheduler, 2);
    scheduler.finish(running[0]!.placement!, answered(), 3);
    assert.equal(narrow.results.length, 0);
    scheduler.finish(running[1]!.placement!, answered(), 4);
    assert.ok(wide.placement);
    scheduler.finish(wide.placement, answered(), 5);
    assert.ok(narrow.placement);
  });

  test("one that nobody but a full replica may serve holds up nobody else", () => {
    const fleet = readyFleet(2, 1);
    fleet.applyProfile("r0", profile(1, ["llama"], ["poet"]), 0);
    const { scheduler } = made(fleet);
    const onPoet = submit(scheduler, 0, { adapter: "poet" });
    const onOther = submit(scheduler, 0);
    const poet = submit(scheduler, 1, { adapter: "poet" });
    const retry = submit(scheduler, 1, {}, { excluded: new Set(["r1"]), attempt: 2 });
    const plain = submit(scheduler, 2);
    scheduler.finish(onOther.placement!, answered(), 3);
    assert.equal(plain.placement?.replica.id, "r1");
    assert.equal(poet.results.length + retry.results.length, 0);
    scheduler.finish(onPoet.placement!, answered(), 4);
    assert.equal(poet.placement?.replica.id, "r0");
    scheduler.finish(poet.placement, answered(), 5);
    assert.equal(retry.placement?.replica.id, "r0");
  });

  test("what is waiting can be seen by model and class", () => {
    const { scheduler } = made(readyFleet(1, 1));
    ["standard", "batch", "batch", "standard"].forEach((className, at) => submit(scheduler, 10 * at, { className }));
    assert.deepEqual(
      scheduler.waiting(50).toSorted((a, b) => a.requests - b.requests),
      [
        { model: "llama", className: "standard", requests: 1, longestMs: 20, expectedMs: null },
        { model: "llama", className: "batch", requests: 2, longestMs: 40, expectedMs: null },
      ],
    );
    assert.deepEqual(
      scheduler.queue(50).map(({ ahead, className, waitedMs }) => [ahead, className, waitedMs]),
      [
        [0, "standard", 20],
        [1, "batch", 40],
        [2, "batch", 30],
      ],
    );
  });
});

describe("order", () => {
  test("higher classes first, and first come first served within one", () => {
    const { scheduler } = made(readyFleet(1, 1));
    let running = submit(scheduler, 0);
    const late = ["batch", "standard", "interactive", "batch", "interactive"].map((className, at) =>
      submit(scheduler, 1 + at, { className }),
    );
    const order: number[] = [];
    while (order.length < late.length) {
      scheduler.finish(running.placement!, answered(), 10);
      running = late.find((one, at) => one.placement !== null && !order.includes(at))!;
      order.push(late.indexOf(running));
    }
    assert.deepEqual(order, [2, 4, 1, 0, 3]);
  });

  test("low priority finishes within its bound under sustained high priority (32)", () => {
    const { scheduler } = made(readyFleet(1, 1), { limits: { maxWaitMs: 60_000 } });
    let nowMs = 0;
    let running = submit(scheduler, nowMs);
    const low = submit(scheduler, nowMs, { className: "batch" });
    const high = [submit(scheduler, nowMs, { className: "interactive" })];
    while (low.placement === null && nowMs < 10_000) {
      nowMs += 100;
      high.push(submit(scheduler, nowMs, { className: "interactive" }));
      scheduler.finish(running.placement!, answered(), nowMs);
      running = high.find((one) => one.placement !== null && !one.placement.finished) ?? running;
    }
    assert.ok(low.placement, "never served");
    // A twentieth of the tokens is guaranteed: twenty of the others go before it, one each 100 ms.
    assert.ok(low.placement.waitedMs > 1_900 && low.placement.waitedMs <= 2_200, `${low.placement.waitedMs} ms`);
  });

  test("a retry keeps the place of its first arrival", () => {
    const { scheduler } = made(readyFleet(2, 1));
    const first = submit(scheduler, 0);
    const other = submit(scheduler, 0);
    const waiting = submit(scheduler, 1);
    const failedOn = first.placement!.replica.id;
    scheduler.cancel(waiting.ticket, 2);
    const later = submit(scheduler, 3);
    const retry = submit(scheduler, 4, first.request, { attempt: 2 });
    assert.equal(later.results.length + retry.results.length, 0);
    scheduler.finish(first.placement!, answered(), 5);
    assert.equal(retry.placement?.replica.id, failedOn);
    assert.equal(later.results.length, 0);
    scheduler.finish(other.placement!, answered(), 6);
    assert.ok(later.placement);
  });

  test("an unknown class ranks as the standard one", () => {
    assert.equal(new ClassTable().get("vanished").priority, new ClassTable().get("standard").priority);
  });
});

describe("bounds", () => {
  test("requests: 429 with a time that grows with the queue", () => {
    const { scheduler } = made(readyFleet(1, 1), { limits: { maxRequests: 3 } });
    submit(scheduler, 0);
    for (let at = 0; at < 3; at++) assert.equal(submit(scheduler, 0).results.length, 0);
    const { error } = submit(scheduler, 0);
    assert.equal(error?.code, "queue_full");
    assert.equal(error.httpStatus, 429);
    assert.ok(error.retryable && error.retryAfterMs! >= 1_000);
    assert.equal(scheduler.depth.requests, 3);
  });

  test("bytes", () => {
    const { scheduler } = made(readyFleet(1, 1), { limits: { maxBytes: 250 } });
    submit(scheduler, 0);
    submit(scheduler, 0);
    submit(scheduler, 0);
    assert.equal(submit(scheduler, 0).error?.code, "queue_full");
    assert.deepEqual(scheduler.depth, { requests: 2, bytes: 200 });
  });

  test("time: 503, and the others wait on", () => {
    const { scheduler } = made(readyFleet(1, 1), { limits: { maxWaitMs: 1_000 } });
    submit(scheduler, 0);
    const early = submit(scheduler, 0);
    const late = submit(scheduler, 500);
    scheduler.tick(999);
    assert.equal(early.results.length, 0);
    scheduler.tick(1_000);
    assert.equal(early.error?.code, "queue_timeout");
    assert.equal(early.error?.httpStatus, 503);
    assert.equal(late.results.length, 0);
  });

  test("waiting that an engine's refusal interrupted goes on from where it began", () => {
    const { scheduler } = made(readyFleet(1, 1), { limits: { maxWaitMs: 1_000 } });
    const running = submit(scheduler, 0);
    const again = submit(scheduler, 600, {}, { sinceMs: 100 });
    scheduler.tick(1_099);
    assert.equal(again.results.length, 0);
    scheduler.tick(1_100);
    assert.equal(again.error?.code, "queue_timeout");
    const over = submit(scheduler, 1_200, {}, { sinceMs: 100 });
    assert.equal(over.error?.code, "queue_timeout");
    scheduler.finish(running.placement!, answered(), 1_300);
    // Beyond the time nobody waits; with room nobody has to.
    assert.equal(submit(scheduler, 1_300, {}, { sinceMs: 100 }).placement?.waitedMs, 1_200);
  });

  test("a request past its deadline waits no longer", () => {
    const { scheduler } = made(readyFleet(1, 1));
    submit(scheduler, 0);
    const hurried = submit(scheduler, 0, { deadlineMs: 40 });
    scheduler.tick(scheduler.nextWakeMs()!);
    assert.equal(hurried.error?.code, "too_late");
    assert.equal(submit(scheduler, 100, { deadlineMs: 90 }).error?.code, "too_late");
  });

  test("admit refuses before a body is read, only while nobody has room (14)", () => {
    const { scheduler } = made(readyFleet(1, 1), { limits: { maxRequests: 1, maxBytes: 1_000 } });
    assert.equal(scheduler.admit(30_000_000, 0), null);
    const running = submit(scheduler, 0);
    assert.equal(scheduler.admit(900, 0), null);
    assert.equal(scheduler.admit(30_000_000, 0)?.code, "queue_full");
    submit(scheduler, 0);
    const error = scheduler.admit(0, 0);
    assert.equal(error?.httpStatus, 429);
    assert.ok(error.retryAfterMs! >= 1_000 && error.retryAfterMs! <= 60_000);
    scheduler.finish(running.placement!, answered(), 1);
    assert.equal(scheduler.admit(0, 1), null);
  });

  test("a full queue of one model refuses nobody of another that has room", () => {
    const fleet = readyFleet(1, 1);
    fleet.applyEndpoints("other", [endpoint("o")], 0);
    fleet.applyProfile("o", profile(1, ["mistral"]), 0);
    fleet.applyHealth("o", "ready", 0);
    const { scheduler } = made(fleet, { limits: { maxRequests: 1 } });
    submit(scheduler, 0);
    submit(scheduler, 0);
    assert.equal(scheduler.admit(100, 0), null);
    assert.ok(submit(scheduler, 0, { model: "mistral" }).placement);
  });

  test("Retry-After follows the rate at which requests complete", () => {
    const { scheduler } = made(readyFleet(1, 1), { limits: { maxRequests: 10 } });
    let running = submit(scheduler, 0);
    for (let nowMs = 2_000; nowMs <= 60_000; nowMs += 2_000) {
      scheduler.finish(running.placement!, answered(), nowMs);
      running = submit(scheduler, nowMs);
    }
    for (let at = 0; at < 10; at++) submit(scheduler, 60_000);
    const { error } = submit(scheduler, 60_000);
    // Eleven requests ahead at one in two seconds.
    assert.ok(error!.retryAfterMs! > 18_000 && error!.retryAfterMs! < 26_000, String(error!.retryAfterMs));
  });

  test("the ledger's own bound is an answer, too", () => {
    const { scheduler } = made(readyFleet(1, 8, { maxReservations: 1 }));
    submit(scheduler, 0);
    assert.equal(submit(scheduler, 0).error?.code, "queue_full");
  });
});

describe("who cannot be served", () => {
  test("404 only when nobody has the model or adapter (33)", () => {
    const fleet = readyFleet(2, 4);
    fleet.applyProfile("r1", profile(4, ["llama"], ["poet"]), 0);
    const { scheduler } = made(fleet);
    assert.equal(submit(scheduler, 0, { adapter: "poet" }).placement?.replica.id, "r1");
    assert.equal(submit(scheduler, 0, { adapter: "painter" }).error?.httpStatus, 404);
    assert.equal(submit(scheduler, 0, { model: "gpt-9" }).error?.code, "model_not_found");
    fleet.applyEndpoints("more", [endpoint("unasked")], 0);
    assert.equal(submit(scheduler, 0, { model: "gpt-9" }).error?.code, "no_replica_available");
  });

  test("503 when all replicas are loading or were excluded", () => {
    const { scheduler, fleet } = made(readyFleet(1, 4));
    const excluded = submit(scheduler, 0, {}, { excluded: new Set(["r0"]), attempt: 2 });
    assert.equal(excluded.error?.code, "no_replica_available");
    fleet.applyHealth("r0", "loading", 0);
    const { error } = submit(scheduler, 0);
    assert.equal(error?.code, "no_replica_available");
    assert.match(error.message, /loading/);
    assert.ok(error.retryAfterMs! >= 1_000);
  });

  test("a prompt that no replica can hold is the client's fault", () => {
    const { scheduler } = made(readyFleet(1, 4));
    const identity = { ...request().identity, promptTokens: 200_000, approximate: false };
    assert.equal(submit(scheduler, 0, { identity }).error?.httpStatus, 400);
  });
});

describe("replicas that leave (15)", () => {
  test("those that wait for one that is gone are told, not hung", () => {
    const { scheduler, fleet } = made(readyFleet(1, 1));
    submit(scheduler, 0);
    const waiting = submit(scheduler, 0);
    fleet.applyEndpoints("list", [], 10);
    scheduler.tick(scheduler.nextWakeMs()!);
    assert.equal(waiting.results.length, 1);
    assert.ok(waiting.error);
    assert.equal(scheduler.nextWakeMs(), null);
  });

  test("those bound there without a token hear of it and can be placed again", () => {
    const { scheduler, fleet } = made(readyFleet(2, 4));
    const [a, b] = [submit(scheduler, 0), submit(scheduler, 0)];
    scheduler.firstToken(b.placement!, 5);
    fleet.applyEndpoints("list", [], 10);
    assert.deepEqual([a.lost, b.lost], [1, 0]);
    scheduler.finish(a.placement!, FAILED, 11);
    assert.equal(scheduler.inFlight, 1);
    assert.equal(fleet.ledger.size, 1);
  });

  test("a restarted one starts at zero and stays there when the old requests end (4)", () => {
    const { scheduler, fleet } = made(readyFleet(1, 4));
    const old = [0, 1, 2].map(() => submit(scheduler, 0));
    scheduler.firstToken(old[0]!.placement!, 1);
    const [replica] = fleet.replicas();
    fleet.restarted(replica!, 2);
    fleet.applyHealth("r0", "ready", 2);
    assert.deepEqual(
      old.map(({ lost }) => lost),
      [0, 1, 1],
    );
    for (const one of old) scheduler.finish(one.placement!, FAILED, 3);
    assert.deepEqual(
      ownLoad(replica!),
      ownLoad(replica!).map(() => 0),
    );
    assert.equal(fleet.ledger.size, 0);
    assert.equal(replica!.health.lifecycle.state === "ready" ? replica!.health.lifecycle.failures : -1, 0);
  });
});

describe("cancelling (3)", () => {
  test("a waiting one leaves its place and is told nothing", () => {
    const { scheduler } = made(readyFleet(1, 1));
    const running = submit(scheduler, 0);
    const waiting = submit(scheduler, 0);
    scheduler.cancel(waiting.ticket, 1);
    scheduler.cancel(waiting.ticket, 1);
    assert.deepEqual(scheduler.depth, { requests: 0, bytes: 0 });
    scheduler.finish(running.placement!, answered(), 2);
    assert.equal(waiting.results.length, 0);
  });

  test("a bound one gives its slot to the next, once, and blames nobody", () => {
    const { scheduler, fleet } = made(readyFleet(1, 1));
    const running = submit(scheduler, 0);
    const next = submit(scheduler, 0);
    const last = submit(scheduler, 0);
    scheduler.cancel(running.ticket, 1);
    scheduler.finish(running.placement!, FAILED, 1);
    assert.ok(next.placement);
    assert.equal(last.results.length, 0);
    const { lifecycle } = fleet.replicas()[0]!.health;
    assert.equal(lifecycle.state === "ready" ? lifecycle.failures : -1, 0);
  });

  test("one that is bound but not yet told is released and never told", () => {
    const { scheduler, fleet } = made(readyFleet(1, 2));
    const wide = submit(scheduler, 0, { sequences: 2 });
    let second: ReturnType<typeof submit> | null = null;
    let told = 0;
    // Both are bound by one call; the first to be told cancels the second.
    scheduler.submit(request(), 1, () => {
      told++;
      scheduler.cancel(second!.ticket, 2);
    });
    second = submit(scheduler, 1);
    scheduler.finish(wide.placement!, answered(), 2);
    assert.equal(told, 1);
    assert.equal(second.results.length, 0);
    assert.equal(fleet.ledger.size, 1);
    assert.equal(scheduler.inFlight, 1);
  });

  test("a thousand cancels at any moment leave every counter at zero", () => {
    const { scheduler, fleet } = made(readyFleet(4, 8), { policy: "kvasir" });
    for (let at = 0; at < 1_000; at++) {
      const one = submit(scheduler, at);
      if (one.placement !== null && at % 3 > 0) scheduler.firstToken(one.placement, at);
      if (one.placement !== null && at % 3 > 1) scheduler.progress(one.placement, 7, at);
      scheduler.cancel(one.ticket, at);
    }
    assert.equal(fleet.ledger.size, 0);
    for (const replica of fleet.replicas())
      assert.deepEqual(
        ownLoad(replica),
        ownLoad(replica).map(() => 0),
      );
  });
});

test("shutdown tells those that wait to come back, and lets run what runs (16)", () => {
  const { scheduler } = made(readyFleet(1, 1));
  const running = submit(scheduler, 0);
  const waiting = submit(scheduler, 0);
  scheduler.shutdown();
  assert.equal(waiting.error?.code, "shutting_down");
  assert.equal(waiting.error?.httpStatus, 503);
  assert.ok(waiting.error?.retryable);
  assert.equal(scheduler.admit(0, 1)?.code, "shutting_down");
  assert.equal(submit(scheduler, 1).error?.code, "shutting_down");
  scheduler.finish(running.placement!, answered(), 2);
  assert.equal(scheduler.inFlight, 0);
});

test("its observer hears of each decision, wait, refusal and end once", () => {
  const heard: string[] = [];
  const { scheduler } = made(readyFleet(1, 1), {
    limits: { maxRequests: 1 },
    observer: {
      bound: ({ waitedMs }) => heard.push(`bound after ${waitedMs}`),
      queued: () => heard.push("queued"),
      refused: (asked, { code }) => heard.push(`${asked === null ? "unread" : "read"} ${code}`),
      finished: (_placement, { kind }) => heard.push(kind),
    },
  });
  const running = submit(scheduler, 0);
  const waiting = submit(scheduler, 0);
  submit(scheduler, 0);
  scheduler.admit(1, 0);
  scheduler.finish(running.placement!, answered(), 5);
  scheduler.finish(running.placement!, FAILED, 6);
  scheduler.cancel(running.ticket, 7);
  scheduler.cancel(waiting.ticket, 8);
  assert.deepEqual(heard, [
    "bound after 0",
    "queued",
    "read queue_full",
    "unread queue_full",
    "answered",
    "bound after 5",
    "client_gone",
  ]);
});

test("a policy that throws fails its own request only", () => {
  const { scheduler, fleet } = made(readyFleet(1, 1));
  const running = submit(scheduler, 0);
  const waiting = submit(scheduler, 0);
  scheduler.configure({
    policyFor: () => ({
      name: "broken",
      choose: () => {
        throw new Error("no");
      },
    }),
  });
  scheduler.finish(running.placement!, answered(), 1);
  assert.equal(waiting.error?.code, "internal");
  assert.equal(fleet.ledger.size, 0);
});
