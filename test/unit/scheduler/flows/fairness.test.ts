import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { OTHERS } from "#src/scheduler/flows/fairShare.ts";
import { Counter, job } from "./lineHarness.ts";

const tokens = fc.integer({ min: 1, max: 5_000 });

test("tenants that wait get tokens by their weights, within one request of each", () => {
  const tenant = fc.record({
    weight: fc.constantFrom(0.5, 1, 2, 5),
    jobs: fc.array(tokens, { minLength: 30, maxLength: 30 }),
  });
  fc.assert(
    fc.property(fc.array(tenant, { minLength: 2, maxLength: 5 }), (tenants) => {
      const weights = Object.fromEntries(tenants.map(({ weight }, at) => [`t${at}`, weight]));
      const counter = new Counter({ weights });
      tenants.forEach(({ jobs }, at) => jobs.forEach((each) => counter.queue(`t${at}`, each)));
      const left = tenants.map(({ jobs }) => jobs.length);
      while (left.every((count) => count > 0)) {
        counter.serve();
        left[Number(counter.tenants().at(-1)!.slice(1))]!--;
        const shares = tenants.map(({ weight, jobs }, at) => ({
          got: counter.tokensOf(`t${at}`) / weight,
          slack: Math.max(...jobs) / weight,
        }));
        for (const a of shares)
          for (const b of shares)
            assert.ok(Math.abs(a.got - b.got) <= a.slack + b.slack, `shares ${a.got} and ${b.got} are too far apart`);
      }
    }),
    { numRuns: 100 },
  );
});

test("a thousand waiting requests of one tenant do not delay another's first", () => {
  const counter = new Counter();
  for (let at = 0; at < 1_000; at++) counter.queue("crowd", 500);
  counter.serve(10);
  counter.queue("single", 4_000);
  counter.serve(2);
  assert.ok(counter.tenants(10).includes("single"), "it waited for more than one request of the other");
});

test("share that was left unused is not saved up", () => {
  const counter = new Counter();
  counter.queue("late", 100);
  for (let at = 0; at < 400; at++) counter.queue("early", 100);
  counter.serve(200);
  for (let at = 0; at < 100; at++) counter.queue("late", 100);
  counter.serve(100);
  assert.ok(Math.abs(counter.tokensOf("late", 200) - counter.tokensOf("early", 200)) <= 200);
});

test("share that nobody else wanted is not held against a tenant", () => {
  const counter = new Counter();
  // Placed at once, without waiting.
  for (let at = 0; at < 1_000; at++) counter.charge(job("busy", 900));
  for (let at = 0; at < 50; at++) {
    counter.queue("busy", 100);
    counter.queue("new", 100);
  }
  counter.serve(40);
  assert.ok(counter.tokensOf("busy", 1_000) >= 1_000, `busy got ${counter.tokensOf("busy", 1_000)} of 4000`);
});

test("more output than expected counts, less is given back", () => {
  const counter = new Counter();
  const flows = counter.share.classOf("standard").flows;
  for (let at = 0; at < 60; at++) for (const tenant of ["more", "less"]) counter.queue(tenant, 100);
  for (let at = 0; at < 40; at++) {
    counter.serve();
    const tenant = counter.tenants().at(-1)!;
    flows.correct(flows.flowOf(tenant), tenant === "more" ? 100 : -50);
  }
  // At 200 tokens each against 50 each, one gets four times as many requests.
  const requests = counter.tenants().filter((tenant) => tenant === "less").length;
  assert.ok(requests >= 30 && requests <= 34, `${requests} of 40`);
});

test("flows are bounded: idle ones are forgotten, and who finds no place shares one", () => {
  const counter = new Counter({ maxFlows: 4 });
  const { flows } = counter.share.classOf("standard");
  for (let at = 0; at < 10; at++) for (let turn = 0; turn < 5; turn++) counter.queue(`t${at}`, 100);
  assert.equal(flows.size, 4);
  assert.deepEqual(
    [...flows.flows()].map(({ tenant }) => tenant),
    ["t0", "t1", "t2", OTHERS],
  );
  counter.serve(20);
  // Those with a place of their own get as much as all the others together.
  for (const tenant of ["t0", "t1", "t2"]) assert.equal(counter.tokensOf(tenant), 500);
  counter.serve(30);
  assert.equal(counter.served.length, 50);
  for (let at = 10; at < 1_000; at++) {
    counter.queue(`t${at}`, 100);
    counter.serve();
  }
  assert.ok(flows.size <= 4);
  assert.equal(counter.tenants().filter((tenant) => tenant === "t999").length, 1);
});
