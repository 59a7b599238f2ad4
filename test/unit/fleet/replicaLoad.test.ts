import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FOREIGN_FRESH_MS } from "#src/fleet/replicaLoad.ts";
import { metrics, readyFleet, request } from "./samples.ts";

describe("the load of a replica", () => {
  it("adds what others put there to what we did", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const a = replica("a:1");
    for (let at = 0; at < 3; at++) fleet.ledger.reserve(request(), a, 0, 100, clock.nowMs());
    clock.advance(1000);
    fleet.applyMetrics(a, metrics({ runningRequests: 5, waitingRequests: 2 }), clock.nowMs());
    const view = a.load.at(clock.nowMs());
    assert.equal(view.sequences, 7);
    assert.equal(view.foreignSequences, 4);
    assert.equal(view.waitingSequences, 3 + 2);
    assert.equal(a.load.slotsTaken(clock.nowMs()), 7);
  });

  it("does not take our own just finished requests for somebody else's", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const a = replica("a:1");
    const made = [1, 2, 3].map(() => fleet.ledger.reserve(request(), a, 0, 100, clock.nowMs()));
    clock.advance(1000);
    for (const one of made) fleet.ledger.release(one, clock.nowMs());
    clock.advance(50);
    fleet.applyMetrics(a, metrics({ runningRequests: 3, waitingRequests: 0 }), clock.nowMs());
    assert.equal(a.load.at(clock.nowMs()).sequences, 0);
    clock.advance(1000);
    fleet.applyMetrics(a, metrics({ runningRequests: 3, waitingRequests: 0 }), clock.nowMs());
    assert.equal(a.load.at(clock.nowMs()).sequences, 3, "a second later they would have been gone");
  });

  it("counts own requests made since the scrape, so that several between two polls spread", () => {
    const { fleet, clock, replica } = readyFleet(["a:1", "b:1", "c:1", "d:1"]);
    for (const one of fleet.replicas())
      fleet.applyMetrics(one, metrics({ runningRequests: 0, waitingRequests: 0 }), clock.nowMs());
    for (let at = 0; at < 8; at++) {
      const [least] = [...fleet.replicas()].sort(
        (one, other) => one.load.at(clock.nowMs()).sequences - other.load.at(clock.nowMs()).sequences,
      );
      fleet.ledger.reserve(request(), least!, 0, 100, clock.nowMs());
    }
    for (const id of ["a:1", "b:1", "c:1", "d:1"]) assert.equal(replica(id).load.sequences, 2);
  });

  it("lets an old scrape fade to nothing", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const a = replica("a:1");
    fleet.applyMetrics(a, metrics({ runningRequests: 10, kvUsage: 0.5, kvCapacityTokens: 1000 }), clock.nowMs());
    clock.advance(FOREIGN_FRESH_MS);
    assert.equal(a.load.at(clock.nowMs()).sequences, 10);
    assert.equal(a.load.at(clock.nowMs()).decodeKvTokens, 500);
    clock.advance(FOREIGN_FRESH_MS / 2);
    assert.equal(a.load.at(clock.nowMs()).sequences, 5);
    clock.advance(FOREIGN_FRESH_MS / 2);
    assert.equal(a.load.at(clock.nowMs()).sequences, 0);
    assert.equal(a.load.at(clock.nowMs()).decodeKvTokens, 0);
  });

  it("takes a metric that is not published for unknown, not for zero", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const a = replica("a:1");
    fleet.applyMetrics(a, metrics({ runningRequests: 10 }), clock.nowMs());
    fleet.applyMetrics(a, metrics({ runningRequests: null }), clock.nowMs());
    assert.equal(a.load.at(clock.nowMs()).sequences, 10);
  });

  it("takes off the queue what the prompt at its head has had already, and no more", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const a = replica("a:1");
    const first = fleet.ledger.reserve(request({ promptTokens: 10_000 }), a, 0, 10, clock.nowMs());
    const second = fleet.ledger.reserve(request({ promptTokens: 20_000 }), a, 0, 10, clock.nowMs());
    const wholeMs = first.prefillMs + second.prefillMs;
    assert.equal(a.load.at(clock.nowMs()).pendingPrefillMs, wholeMs);
    clock.advance(10);
    assert.equal(a.load.at(clock.nowMs()).pendingPrefillMs, wholeMs - 10);
    clock.advance(1e6);
    assert.equal(a.load.at(clock.nowMs()).pendingPrefillMs, second.prefillMs);
    fleet.ledger.firstToken(first, clock.nowMs());
    clock.advance(5);
    assert.equal(a.load.at(clock.nowMs()).pendingPrefillMs, second.prefillMs - 5);
  });

  it("knows when the first of the decoding requests will end", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const a = replica("a:1");
    assert.equal(a.load.earliestRemainingTokens(), 0);
    const long = fleet.ledger.reserve(request(), a, 0, 500, clock.nowMs());
    const pair = fleet.ledger.reserve(request({ sequences: 2 }), a, 0, 100, clock.nowMs());
    assert.equal(a.load.earliestRemainingTokens(), 0, "none decodes");
    fleet.ledger.firstToken(long, clock.nowMs());
    assert.equal(a.load.earliestRemainingTokens(), 500);
    fleet.ledger.progress(pair, 40, clock.nowMs());
    assert.equal(a.load.earliestRemainingTokens(), 80);
    fleet.ledger.release(pair, clock.nowMs());
    assert.equal(a.load.earliestRemainingTokens(), 500);
  });

  it("has room until its slots are taken, ours and others', and none while it asks to be left alone", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const a = replica("a:1");
    fleet.applyMetrics(a, metrics({ maxRunningRequests: 4, runningRequests: 2, waitingRequests: 0 }), clock.nowMs());
    fleet.ledger.reserve(request(), a, 0, 10, clock.nowMs());
    assert.equal(a.hasRoom(1, clock.nowMs()), true);
    const second = fleet.ledger.reserve(request(), a, 0, 10, clock.nowMs());
    assert.equal(a.hasRoom(1, clock.nowMs()), false);
    fleet.ledger.release(second, clock.nowMs());
    assert.equal(a.hasRoom(1, clock.nowMs()), true);
    a.health.busy({ retryAfterMs: 1000, others: 1, boundMs: clock.nowMs() }, clock.nowMs());
    assert.equal(a.hasRoom(1, clock.nowMs()), false);
    clock.advance(1000);
    assert.equal(a.hasRoom(1, clock.nowMs()), false, "it refused one beside the one it has");
    a.health.answered(clock.nowMs());
    assert.equal(a.hasRoom(1, clock.nowMs()), true);
  });

  it("lets a request of many sequences in where an eighth of the slots is free, or none is taken", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"], {}, { maxRunningRequests: 16 });
    const roomFor = (sequences: number): boolean => replica("a:1").hasRoom(sequences, clock.nowMs());
    const take = (sequences: number): unknown =>
      fleet.ledger.reserve(request({ sequences }), replica("a:1"), 0, 10, clock.nowMs());
    assert.equal(roomFor(500), true);
    take(14);
    assert.deepEqual([roomFor(1), roomFor(2), roomFor(3), roomFor(500)], [true, true, true, true]);
    take(1);
    assert.deepEqual([roomFor(1), roomFor(2), roomFor(500)], [true, false, false]);
    take(500);
    assert.equal(roomFor(1), false);
  });
});
