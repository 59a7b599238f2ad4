import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { RouterError } from "#src/errors/routerError.ts";
import type { ReplicaLoad } from "#src/fleet/replicaLoad.ts";
import type { Reservation } from "#src/fleet/reservation.ts";
import { readyFleet, request } from "./samples.ts";

const COUNTERS = [
  "requests",
  "sequences",
  "waitingSequences",
  "decodingSequences",
  "decodeKvTokens",
  "pendingPrefillTokens",
  "pendingPrefillMs",
  "reservedKvTokens",
  "remainingOutputTokens",
] as const satisfies readonly (keyof ReplicaLoad)[];

type Counters = Record<(typeof COUNTERS)[number], number>;

function counters(load: ReplicaLoad): Counters {
  return Object.fromEntries(COUNTERS.map((name) => [name, load[name]])) as Counters;
}

/** The same, added up anew from the reservations that live. */
function addedUp(reservations: readonly Reservation[]): Counters {
  const sum = Object.fromEntries(COUNTERS.map((name) => [name, 0])) as Counters;
  for (const one of reservations) {
    if (one.phase === "held") {
      sum.reservedKvTokens += one.promptTokens;
      continue;
    }
    sum.requests++;
    sum.sequences += one.sequences;
    sum.reservedKvTokens += one.promptTokens + one.outputTokens + one.remainingTokens;
    sum.remainingOutputTokens += one.remainingTokens;
    if (one.phase === "waiting") {
      sum.waitingSequences += one.sequences;
      sum.pendingPrefillTokens += one.promptTokens - one.cachedTokens;
      sum.pendingPrefillMs += one.prefillMs;
    } else {
      sum.decodingSequences += one.sequences;
      sum.decodeKvTokens += one.promptTokens + one.outputTokens;
    }
  }
  return sum;
}

const step = fc.record({
  kind: fc.constantFrom(
    "reserve",
    "reserve",
    "first",
    "progress",
    "progress",
    "hold",
    "release",
    "release",
    "restart",
    "again",
  ),
  which: fc.nat(1000),
  replica: fc.constantFrom("a:1", "b:1", "c:1"),
  promptTokens: fc.integer({ min: 0, max: 50_000 }),
  cachedTokens: fc.double({ min: -10, max: 60_000, noNaN: true }),
  outputTokens: fc.double({ min: 0, max: 5_000, noNaN: true }),
  sequences: fc.integer({ min: 1, max: 4 }),
  maxOutputTokens: fc.option(fc.integer({ min: 1, max: 4_000 })),
  generates: fc.boolean(),
});

describe("the ledger", () => {
  it("equals what adding up the live reservations gives, and returns to exactly zero", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const { fleet, clock, replica } = readyFleet(["a:1", "b:1", "c:1"]);
        const made: Reservation[] = [];
        for (const one of steps) {
          clock.advance(7);
          const known = made[one.which % Math.max(1, made.length)];
          if (one.kind === "reserve")
            made.push(
              fleet.ledger.reserve(
                request(one),
                replica(one.replica),
                one.cachedTokens,
                one.outputTokens,
                clock.nowMs(),
              ),
            );
          else if (one.kind === "restart") fleet.restarted(replica(one.replica), clock.nowMs());
          else if (known === undefined) continue;
          else if (one.kind === "first") fleet.ledger.firstToken(known, clock.nowMs());
          else if (one.kind === "hold") fleet.ledger.hold(known, clock.nowMs());
          else if (one.kind === "progress") fleet.ledger.progress(known, one.outputTokens, clock.nowMs());
          else fleet.ledger.release(known, clock.nowMs());

          for (const { id, load } of fleet.replicas()) {
            const live = made.filter((each) => each.live && each.replica.id === id);
            assert.deepEqual(counters(load), addedUp(live));
          }
        }
        for (const each of made) fleet.ledger.release(each, clock.nowMs());
        for (const { load } of fleet.replicas()) {
          assert.deepEqual(counters(load), addedUp([]));
          assert.equal(load.waiting.first, null);
          assert.equal(load.decoding.first, null);
        }
        assert.equal(fleet.ledger.size, 0);
      }),
      { numRuns: 200 },
    );
  });

  it("is at zero after a thousand requests were cancelled before, amid and after their first token", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    for (let at = 0; at < 1000; at++) {
      const one = fleet.ledger.reserve(
        request({ promptTokens: 37 * at }),
        replica("a:1"),
        at,
        10.3 * at,
        clock.nowMs(),
      );
      clock.advance(1);
      if (at % 3 > 0) fleet.ledger.firstToken(one, clock.nowMs());
      if (at % 3 > 1) fleet.ledger.progress(one, at, clock.nowMs());
      fleet.ledger.release(one, clock.nowMs());
      fleet.ledger.release(one, clock.nowMs());
    }
    assert.deepEqual(counters(replica("a:1").load), addedUp([]));
  });

  it("forgets a dead incarnation at once, and what still comes of it changes nothing", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const old = fleet.ledger.reserve(request(), replica("a:1"), 0, 100, clock.nowMs());
    fleet.endpointRestarted("a:1", clock.nowMs());
    assert.equal(old.live, false);
    assert.equal(replica("a:1").load.requests, 0);
    const young = fleet.ledger.reserve(request({ promptTokens: 10 }), replica("a:1"), 0, 5, clock.nowMs());
    const before = counters(replica("a:1").load);
    fleet.ledger.firstToken(old, clock.nowMs());
    fleet.ledger.progress(old, 50, clock.nowMs());
    fleet.ledger.release(old, clock.nowMs());
    assert.deepEqual(counters(replica("a:1").load), before);
    assert.equal(young.live, true);
    assert.equal(fleet.ledger.size, 1);
  });

  it("counts a request from the moment of choice, prompts of 32k tokens and one output token too", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const { load } = replica("a:1");
    fleet.ledger.reserve(request({ promptTokens: 32_768, maxOutputTokens: 1 }), replica("a:1"), 0, 1, clock.nowMs());
    const view = load.at(clock.nowMs());
    assert.equal(view.sequences, 1);
    assert.equal(view.waitingSequences, 1);
    assert.equal(view.pendingPrefillTokens, 32_768);
    assert.equal(view.reservedKvTokens, 32_769);
    assert.ok(view.pendingPrefillMs > 100);
  });

  it("expects a request that outlives its expectation to go on, within its limit", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const one = fleet.ledger.reserve(request({ maxOutputTokens: 110 }), replica("a:1"), 0, 100, clock.nowMs());
    fleet.ledger.progress(one, 60, clock.nowMs());
    assert.equal(replica("a:1").load.remainingOutputTokens, 40);
    fleet.ledger.progress(one, 100, clock.nowMs());
    assert.equal(replica("a:1").load.remainingOutputTokens, 10);
    fleet.ledger.progress(one, 110, clock.nowMs());
    assert.equal(replica("a:1").load.remainingOutputTokens, 0);
  });

  it("refuses past its bound, as something that a retry may help", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"], { maxReservations: 3 });
    const made = [1, 2, 3].map(() => fleet.ledger.reserve(request(), replica("a:1"), 0, 1, clock.nowMs()));
    assert.throws(
      () => fleet.ledger.reserve(request(), replica("a:1"), 0, 1, clock.nowMs()),
      (error) => error instanceof RouterError && error.code === "queue_full" && error.retryable,
    );
    assert.equal(replica("a:1").load.requests, 3);
    fleet.ledger.release(made[0]!, clock.nowMs());
    fleet.ledger.reserve(request(), replica("a:1"), 0, 1, clock.nowMs());
  });
});
