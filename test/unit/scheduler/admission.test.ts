import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import { createPolicy } from "#src/routing/createPolicy.ts";
import { ClassTable } from "#src/scheduler/classes.ts";
import type { ServiceClass } from "#src/scheduler/classes.ts";
import { QUEUE_LIMITS } from "#src/scheduler/queueLimits.ts";
import type { QueueLimits } from "#src/scheduler/queueLimits.ts";
import { Scheduler } from "#src/scheduler/scheduler.ts";
import { answered, made, readyFleet, request, submit } from "./harness.ts";
import type { Submitted } from "./harness.ts";

const STANDARD = new ClassTable().get("standard");

function withClasses(
  classes: readonly ServiceClass[],
  {
    limits = {},
    tenantWeight = () => 1,
  }: { limits?: Partial<QueueLimits>; tenantWeight?: (tenant: string) => number } = {},
): Scheduler {
  const policy = createPolicy("kvasir");
  return new Scheduler({
    fleet: readyFleet(1, 1),
    random: new SeededRandom(1),
    policyFor: () => policy,
    classes: new ClassTable(classes),
    limits: { ...QUEUE_LIMITS, ...limits },
    tenantWeight,
  });
}

/** Ends what runs, one after the other, until nobody waits; the order in which they were bound. */
function serveAll(scheduler: Scheduler, submitted: readonly Submitted[], fromMs: number): Submitted[] {
  const order: Submitted[] = [];
  for (let step = 0; step < submitted.length; step++) {
    const running = submitted.find(({ placement }) => placement !== null && !placement.finished);
    if (running === undefined) break;
    order.push(running);
    scheduler.finish(running.placement!, answered({ outputTokens: 100 }), fromMs + step);
  }
  return order;
}

describe("when as many wait as may", () => {
  test("the lowest class gives way, the last of it, and is told when to come back", () => {
    const { scheduler } = made(readyFleet(1, 1), { limits: { maxRequests: 3 } });
    submit(scheduler, 0);
    const [first, last] = [submit(scheduler, 1, { className: "batch" }), submit(scheduler, 2, { className: "batch" })];
    const standard = submit(scheduler, 3);
    const interactive = submit(scheduler, 4, { className: "interactive" });
    assert.equal(last.error?.code, "displaced");
    assert.equal(last.error.httpStatus, 429);
    assert.ok(last.error.retryAfterMs! >= 1_000);
    assert.equal(first.results.length + standard.results.length + interactive.results.length, 0);
    submit(scheduler, 5, { className: "interactive" });
    assert.equal(first.error?.code, "displaced");
    submit(scheduler, 6, { className: "interactive" });
    assert.equal(standard.error?.code, "displaced");
    assert.equal(submit(scheduler, 7).error?.code, "queue_full", "a lower class than all that wait");
    assert.equal(scheduler.depth.requests, 3);
  });

  test("the tenant with most waiting gives way to another of its class", () => {
    const { scheduler } = made(readyFleet(1, 1), { limits: { maxRequests: 4 } });
    submit(scheduler, 0);
    const crowd = Array.from({ length: 5 }, (_, at) => submit(scheduler, at, { tenant: "crowd" }));
    assert.equal(crowd[4]!.error?.code, "queue_full");
    submit(scheduler, 9, { tenant: "single" });
    assert.equal(crowd[3]!.error?.code, "displaced");
    submit(scheduler, 10, { tenant: "single" });
    assert.equal(crowd[2]!.error?.code, "displaced");
    assert.equal(submit(scheduler, 11, { tenant: "single" }).error?.code, "queue_full", "two of each are fair");
  });

  test("nobody goes for somebody who does not come in", () => {
    const { scheduler } = made(readyFleet(1, 1), { limits: { maxBytes: 1_000 } });
    submit(scheduler, 0);
    const waiting = [
      submit(scheduler, 1, { className: "interactive", bodyBytes: 600 }),
      submit(scheduler, 2, { className: "batch", bodyBytes: 100 }),
      submit(scheduler, 3, { className: "batch", bodyBytes: 300 }),
    ];
    assert.equal(submit(scheduler, 4, { bodyBytes: 500 }).error?.code, "queue_full");
    assert.deepEqual(
      waiting.map(({ results }) => results.length),
      [0, 0, 0],
    );
    assert.deepEqual(scheduler.depth, { requests: 3, bytes: 1_000 });
    assert.equal(submit(scheduler, 5, { bodyBytes: 400 }).error, null);
    assert.deepEqual(
      waiting.map(({ error }) => error?.code ?? null),
      [null, "displaced", "displaced"],
    );
  });
});

describe("what cannot be in time", () => {
  const hurried: ServiceClass = { ...STANDARD, name: "hurried", ttftTargetMs: 3_000, shedLate: true };

  test("is refused at once when those that go before it take too long", () => {
    const scheduler = withClasses([hurried]);
    const long = { identity: { ...request().identity, promptTokens: 60_000 }, className: "hurried" };
    assert.notEqual(submit(scheduler, 0, long).placement, null);
    const refused = submit(scheduler, 1, long);
    assert.equal(refused.error?.code, "too_late");
    assert.equal(refused.error.httpStatus, 503);
    assert.ok(refused.error.retryAfterMs! >= 1_000);
    assert.equal(submit(scheduler, 2, { ...long, className: "standard" }).error, null, "it has no such promise");
  });

  test("is refused while it waits, as soon as its own prompt takes longer than what is left", () => {
    const scheduler = withClasses([hurried]);
    submit(scheduler, 0, { maxOutputTokens: 10 });
    const waiting = submit(scheduler, 10, { className: "hurried" });
    assert.equal(waiting.results.length, 0);
    let nowMs = 10;
    for (let step = 0; step < 1_000 && waiting.error === null; step++)
      scheduler.tick((nowMs = scheduler.nextWakeMs()!));
    assert.equal(waiting.error?.code, "too_late");
    assert.ok(nowMs < 3_010, `${nowMs} ms: the time for its prompt was not left off`);
  });

  test("a deadline is no different", () => {
    const scheduler = withClasses([]);
    const long = { identity: { ...request().identity, promptTokens: 60_000 } };
    submit(scheduler, 0, long);
    assert.equal(submit(scheduler, 1, { ...long, deadlineMs: 3_000 }).error?.code, "too_late");
    assert.equal(submit(scheduler, 1, { ...long, deadlineMs: 300_000 }).error, null);
  });
});

test("a class may wait for longer than others", () => {
  const scheduler = withClasses([{ ...STANDARD, name: "patient", queueMs: 90_000 }], { limits: { maxWaitMs: 1_000 } });
  submit(scheduler, 0);
  const [patient, other] = [submit(scheduler, 0, { className: "patient" }), submit(scheduler, 0)];
  scheduler.tick(1_000);
  assert.equal(other.error?.code, "queue_timeout");
  scheduler.tick(89_999);
  assert.equal(patient.results.length, 0);
  scheduler.tick(90_000);
  assert.equal(patient.error?.code, "queue_timeout");
});

test("tenants share what there is by their weights, however many requests each sends", () => {
  const scheduler = withClasses([], { tenantWeight: (tenant) => (tenant === "gold" ? 3 : 1) });
  const all = [submit(scheduler, 0)];
  for (let at = 0; at < 200; at++) all.push(submit(scheduler, at, { tenant: "crowd" }));
  for (let at = 0; at < 60; at++) all.push(submit(scheduler, 200 + at, { tenant: "gold" }));
  const served = serveAll(scheduler, all, 1_000).slice(1, 61);
  const gold = served.filter((one) => one.request.tenant === "gold").length;
  assert.ok(gold >= 43 && gold <= 47, `gold got ${gold} of 60`);
});

test("batch work gets its guaranteed share while more interactive work waits than can be served", () => {
  const scheduler = withClasses([]);
  const all = [submit(scheduler, 0)];
  for (let at = 0; at < 200; at++)
    all.push(submit(scheduler, at, { className: "interactive" }), submit(scheduler, at, { className: "batch" }));
  const served = serveAll(scheduler, all, 1_000).slice(1, 161);
  const batch = served.filter((one) => one.request.className === "batch").length;
  assert.ok(batch >= 7 && batch <= 10, `batch got ${batch} of 160`);
});

test("tokens that were not used are given back, and more that were used are charged", () => {
  const scheduler = withClasses([]);
  const all = [submit(scheduler, 0)];
  for (let at = 0; at < 40; at++)
    for (const tenant of ["brief", "lengthy"]) all.push(submit(scheduler, at, { tenant, maxOutputTokens: null }));
  const order: string[] = [];
  for (let step = 0; step < 60; step++) {
    const running = all.find(({ placement }) => placement !== null && !placement.finished);
    assert.ok(running?.placement);
    order.push(running.request.tenant);
    const outputTokens = running.request.tenant === "lengthy" ? 3_000 : 0;
    scheduler.finish(running.placement, answered({ outputTokens }), 1_000 + step);
  }
  const lengthy = order.filter((tenant) => tenant === "lengthy").length;
  assert.ok(lengthy >= 9 && lengthy <= 20, `four times the tokens, and ${lengthy} of 60`);
});
