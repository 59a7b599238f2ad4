import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ClassTable } from "#src/scheduler/classes.ts";
import { BusyRate } from "#src/scheduler/flows/busyRate.ts";
import { serviceOrder, tokensBefore } from "#src/scheduler/flows/serviceOrder.ts";
import { MAX_MODELS, Shares } from "#src/scheduler/flows/shares.ts";
import { Counter, job } from "./lineHarness.ts";
import type { Job } from "./lineHarness.ts";

function shares(weights: Readonly<Record<string, number>> = {}): Shares<Job> {
  return new Shares<Job>({ classes: new ClassTable(), tenantWeight: (tenant) => weights[tenant] ?? 1 });
}

function wait(all: Shares<Job>, tenant: string, className: string, times = 1, model = "llama"): Job[] {
  return Array.from({ length: times }, () => {
    const waiter = job(tenant, 100, className);
    waiter.seat = all.of(model).arrives(waiter);
    return waiter;
  });
}

test("the lowest class gives way first, and of it the last of whom most wait", () => {
  const all = shares();
  wait(all, "a", "interactive", 5);
  const [, , last] = wait(all, "b", "batch", 3, "other");
  wait(all, "c", "batch", 2);
  wait(all, "d", "standard", 1);
  const newcomer = { tenant: "z", bodyBytes: 10 };
  assert.equal(all.givesWay({ ...newcomer, className: "interactive" }), last);
  assert.equal(all.givesWay({ ...newcomer, className: "standard" }), last);
  assert.equal(all.givesWay({ ...newcomer, className: "batch" }), last, "of the same class, who has more waiting");
  assert.equal(all.givesWay({ ...newcomer, tenant: "b", className: "batch" }), null, "nobody for one's own sake");
  assert.equal(all.givesWay({ ...newcomer, tenant: "c", className: "batch" }), null, "nor for an equal's");
});

test("a higher class never gives way to a lower one", () => {
  const all = shares();
  wait(all, "a", "interactive", 50);
  for (const className of ["standard", "batch"])
    assert.equal(all.givesWay({ className, tenant: "z", bodyBytes: 0 }), null);
});

test("load is by weight, and large bodies count", () => {
  const all = shares({ heavy: 10 });
  wait(all, "heavy", "standard", 8);
  const [, light] = wait(all, "light", "standard", 2);
  assert.equal(all.givesWay({ className: "standard", tenant: "z", bodyBytes: 0 }), light);
  assert.equal(all.givesWay({ className: "standard", tenant: "z", bodyBytes: 10_000_000 }), null);
});

test("models are bounded: those for which nobody waits are forgotten", () => {
  const all = shares();
  const [kept] = wait(all, "a", "standard", 1, "kept");
  const share = all.of("kept");
  for (let at = 0; at < 3 * MAX_MODELS; at++) all.of(`m${at}`);
  assert.ok([...all.all()].length <= MAX_MODELS);
  assert.equal(all.of("kept"), share);
  share.leaves(kept!.seat!);
});

test("the predicted order is the order of service", () => {
  const waiter = fc.record({
    className: fc.constantFrom("interactive", "standard", "batch"),
    tenant: fc.constantFrom("a", "b", "c"),
    tokens: fc.integer({ min: 1, max: 9_000 }),
  });
  fc.assert(
    fc.property(fc.array(waiter, { maxLength: 40 }), (waiters) => {
      // Without guarantees, which the prediction leaves out.
      const classes = new ClassTable().all().map((each) => ({ ...each, guaranteedShare: 0 }));
      const counter = new Counter({ classes, weights: { a: 3 } });
      for (const { className, tenant, tokens } of waiters) counter.queue(tenant, tokens, className);
      const predicted = serviceOrder(counter.share, ({ sequence }) => sequence);
      counter.serve(waiters.length);
      assert.deepEqual(
        predicted,
        counter.served.map(({ job: each }) => each),
      );
    }),
    { numRuns: 100 },
  );
});

test("tokens before a newcomer: higher classes, its own tenant's, and as many of the other tenants", () => {
  const all = shares();
  const share = all.of("llama");
  wait(all, "x", "interactive", 7);
  wait(all, "a", "standard", 1_000);
  wait(all, "c", "standard", 2);
  wait(all, "x", "batch", 50);
  assert.equal(tokensBefore(share, "interactive", "y"), 100);
  assert.equal(tokensBefore(share, "standard", "b"), 700 + 200);
  assert.equal(tokensBefore(share, "standard", "c"), 700 + 200 + 300);
  assert.equal(tokensBefore(share, "standard", "a"), 700 + 100_200);
  assert.equal(tokensBefore(share, "batch", "x"), 700 + 100_200 + 5_000);
});

test("the rate is that of busy times, and unknown until there were enough", () => {
  const rate = new BusyRate();
  rate.bound(1_000_000, 0);
  assert.equal(rate.perMs(0), null);
  rate.begins(1_000);
  for (let ms = 1_100; ms <= 20_000; ms += 100) rate.bound(500, ms);
  assert.ok(Math.abs(rate.perMs(20_000)! - 5) < 0.1, `${rate.perMs(20_000)}`);
  rate.ends(20_000);
  assert.ok(Math.abs(rate.perMs(500_000)! - 5) < 0.1, "an idle time does not lower it");
});
