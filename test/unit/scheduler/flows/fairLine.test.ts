import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ClassTable } from "#src/scheduler/classes.ts";
import { FairLine, before } from "#src/scheduler/flows/fairLine.ts";
import type { Place } from "#src/scheduler/flows/fairLine.ts";
import { ModelShare } from "#src/scheduler/flows/modelShare.ts";
import { Counter, job } from "./lineHarness.ts";
import type { Job } from "./lineHarness.ts";

const event = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("push" as const),
      className: fc.constantFrom("batch", "standard", "interactive"),
      tenant: fc.constantFrom("a", "b", "c"),
      tokens: fc.integer({ min: 1, max: 50_000 }),
      rank: fc.nat(9),
      line: fc.nat(1),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("serve" as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("remove" as const), which: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("passOver" as const), line: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restore" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("correct" as const),
      tenant: fc.constantFrom("a", "b"),
      by: fc.integer({ min: -900, max: 900 }),
    }),
  },
);

test("whatever comes and goes by two lines: each leaves once, and the head is who the shares say", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 150 }), (events) => {
      const share = new ModelShare<Job>({ classes: new ClassTable(), tenantWeight: () => 1 });
      const lines = [new FairLine<Job>(share), new FairLine<Job>(share)] as const;
      let waiting: { place: Place<Job>; line: number; passed: boolean }[] = [];
      const leave = (place: Place<Job>): void => {
        const { line } = waiting.find((one) => one.place === place)!;
        lines[line === 0 ? 0 : 1].remove(place);
        share.leaves(place.value.seat!);
        waiting = waiting.filter((one) => one.place !== place);
      };
      for (const happened of events) {
        switch (happened.kind) {
          case "push": {
            const { className, tenant, tokens, rank, line } = happened;
            const queued = job(tenant, tokens, className);
            queued.seat = share.arrives(queued);
            const place = lines[line === 0 ? 0 : 1].push(queued, rank, queued.seat);
            waiting.push({ place, line, passed: false });
            break;
          }
          case "serve": {
            const heads = lines.map(({ first }) => first).filter((place) => place !== null);
            const [a, b] = heads;
            if (a === undefined) break;
            const next = b !== undefined && before(share, b, a) ? b : a;
            share.charge(next.inFlow.ofClass.share, next.inFlow.flow, next.value.tokens);
            leave(next);
            break;
          }
          case "remove": {
            const one = waiting[happened.which % Math.max(1, waiting.length)];
            if (one === undefined) break;
            leave(one.place);
            lines[one.line === 0 ? 0 : 1].remove(one.place);
            break;
          }
          case "passOver": {
            const line = lines[happened.line === 0 ? 0 : 1];
            const { first } = line;
            if (first === null) break;
            line.passOver(first);
            waiting.find(({ place }) => place === first)!.passed = true;
            break;
          }
          case "restore":
            for (const line of lines) line.restore();
            for (const one of waiting) one.passed = false;
            break;
          case "correct": {
            const { flows } = share.classOf("standard");
            flows.correct(flows.flowOf(happened.tenant), happened.by);
            break;
          }
        }
        for (const [at, line] of lines.entries()) {
          const here = waiting.filter((one) => one.line === at);
          assert.equal(line.size, here.length);
          assert.deepEqual(new Set(line.values()), new Set(here.map(({ place }) => place.value)));
          const open = here.filter(({ passed }) => !passed).map(({ place }) => place);
          const least = open.reduce<Place<Job> | null>(
            (best, place) => (best === null || before(share, place, best) ? place : best),
            null,
          );
          assert.equal(line.first, least);
        }
      }
      for (const { place } of waiting) leave(place);
      for (const each of share.classes()) {
        assert.equal(each.waiting, 0);
        assert.equal(each.waitingTokens, 0);
        for (const { waiting, waitingTokens, waitingBytes } of each.flows.flows())
          assert.deepEqual([waiting, waitingTokens, waitingBytes], [0, 0, 0]);
        assert.equal(each.flows.waitingWeight, 0);
      }
    }),
    { numRuns: 200 },
  );
});

test("with one tenant and one class it is the given order", () => {
  const counter = new Counter();
  const places = [5, 3, 8, 3, 1].map((rank) => counter.queue("t", 100, "standard", rank));
  counter.serve(5);
  assert.deepEqual(
    counter.served.map(({ job }) => places.findIndex(({ value }) => value === job)),
    [4, 1, 3, 0, 2],
  );
});

test("one that is passed over loses nothing of its turn", () => {
  const counter = new Counter();
  for (let at = 0; at < 10; at++) for (const tenant of ["stuck", "free"]) counter.queue(tenant, 1_000);
  // For a while there is no room for one tenant's.
  for (let at = 0; at < 4; at++) {
    for (let place = counter.line.first; place?.value.request.tenant === "stuck"; place = counter.line.first)
      counter.line.passOver(place);
    counter.serve();
    counter.line.restore();
  }
  assert.deepEqual(counter.tenants(), ["free", "free", "free", "free"]);
  counter.serve(4);
  assert.deepEqual(counter.tenants(4), ["stuck", "stuck", "stuck", "stuck"]);
});

test("who would lead a line does, once it waits there", () => {
  const newcomer = fc.record({
    className: fc.constantFrom("batch", "standard", "interactive"),
    tenant: fc.constantFrom("a", "b", "c"),
    tokens: fc.integer({ min: 1, max: 9_000 }),
    rank: fc.nat(9),
  });
  fc.assert(
    fc.property(fc.array(newcomer, { maxLength: 30 }), fc.array(fc.boolean()), newcomer, (waiting, serves, last) => {
      const counter = new Counter();
      waiting.forEach(({ tenant, tokens, className, rank }, at) => {
        counter.queue(tenant, tokens, className, rank);
        if (serves[at] === true) counter.serve();
      });
      const share = counter.share.classOf(last.className);
      const standing = { share, flow: share.flows.flowOf(last.tenant) };
      const expected = counter.line.wouldLead(standing, last.rank);
      const place = counter.queue(last.tenant, last.tokens, last.className, last.rank);
      // Classes of one priority that were served alike stand level; then either may lead.
      assert.equal(counter.line.first === place, expected);
    }),
    { numRuns: 300 },
  );
});

test("work before a request: higher classes, lower ranks of its tenant, and as much of other tenants", () => {
  const counter = new Counter({ weights: { heavy: 2 } });
  const queue = (tenant: string, className: string, rank: number, workMs: number): void => {
    const queued = job(tenant, 100, className);
    queued.seat = counter.share.arrives(queued);
    counter.line.push(queued, rank, queued.seat, workMs);
  };
  queue("x", "interactive", 5, 40);
  queue("x", "batch", 0, 1_000);
  for (const rank of [1, 2, 3, 4]) queue("a", "standard", rank, 100);
  for (let at = 0; at < 20; at++) queue("heavy", "standard", at, 100);
  const share = counter.share.classOf("standard");
  const before = (tenant: string, rank: number, workMs: number): number => {
    const self = job(tenant, 100);
    return counter.line.workMsBefore({ share, flow: share.flows.flowOf(tenant) }, rank, workMs, self);
  };
  // Two of its own; the other tenant gets twice what these and itself bring.
  assert.equal(before("a", 2.5, 50), 40 + 200 + 2 * 250);
  assert.equal(before("a", 9, 5_000), 40 + 400 + 2_000, "no more than there is");
  assert.equal(before("heavy", 0.5, 50), 40 + 100 + 150 / 2);
  counter.serve(1_000);
  assert.equal(before("a", 9, 50), 0);
});

test("a long flow is judged by a sample", () => {
  const counter = new Counter();
  for (let at = 0; at < 10_000; at++) {
    const queued = job("a", 100);
    queued.seat = counter.share.arrives(queued);
    counter.line.push(queued, at, queued.seat, 10);
  }
  const share = counter.share.classOf("standard");
  const half = counter.line.workMsBefore({ share, flow: share.flows.flowOf("a") }, 5_000, 10, job("a", 1));
  assert.ok(Math.abs(half / 50_000 - 1) < 0.25, `${half} ms of 50000`);
  assert.equal(counter.line.about(0)?.rank, 0);
  assert.ok(counter.line.about(1)!.rank > 5_000);
});
