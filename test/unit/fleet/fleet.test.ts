import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import { monitored } from "#src/fleet/monitored.ts";
import { base, chain, endpoint, metrics, profile, readyFleet, request } from "./samples.ts";

function ids(fleet: Fleet): readonly string[] {
  return fleet.replicas().map(({ id }) => id);
}

function hits(fleet: Fleet, replicaIndex: number, ...hashes: readonly number[]): number {
  const out = heldBlocks(fleet.indexBound);
  fleet.index.match(chain(...hashes).hashes, [{ index: replicaIndex }], out);
  return out.gpu[replicaIndex]!;
}

describe("the fleet", () => {
  it("joins the endpoints of its sources, and keeps one as long as any source names it", () => {
    const fleet = new Fleet();
    fleet.applyEndpoints("file", [endpoint("a:1"), endpoint("b:1")], 0);
    fleet.applyEndpoints("dns", [endpoint("b:1"), endpoint("c:1")], 0);
    assert.deepEqual(ids(fleet), ["a:1", "b:1", "c:1"]);
    fleet.applyEndpoints("file", [], 1);
    assert.deepEqual(ids(fleet), ["b:1", "c:1"]);
    assert.equal(fleet.byId("a:1"), null);
  });

  it("takes the operator's word for limits that an engine does not publish, also when it changes", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const a = replica("a:1");
    const assumed = () => fleet.conditions.list().find(({ key }) => key === "limits_assumed")?.message;
    assert.deepEqual(a.limits().assumed, ["maxRunningRequests", "kvCapacityTokens"]);
    assert.match(assumed() ?? "", /set maxRunningRequests and kvCapacityTokens of/);
    fleet.applyEndpoints("list", [endpoint("a:1", { kvCapacityTokens: 1000 })], clock.nowMs());
    assert.match(assumed() ?? "", /set maxRunningRequests of/);
    const told = endpoint("a:1", { maxRunningRequests: 7, kvCapacityTokens: 1000 });
    fleet.applyEndpoints("list", [told], clock.nowMs());
    assert.equal(replica("a:1"), a);
    assert.equal(a.limits().maxRunningRequests, 7);
    assert.equal(a.limits().kvCapacityTokens, 1000);
    assert.deepEqual(a.limits().assumed, []);
    assert.equal(assumed(), undefined);
  });

  it("keeps what it knows of a replica whose labels change, and nothing of one whose address does", () => {
    const { fleet, clock, replica } = readyFleet(["a:1", "b:1"]);
    const [a, b] = [replica("a:1"), replica("b:1")];
    fleet.applyEndpoints(
      "list",
      [endpoint("a:1", { labels: { rack: "r2" } }), endpoint("b:1", { url: "http://elsewhere:1" })],
      clock.nowMs(),
    );
    assert.equal(replica("a:1"), a);
    assert.equal(a.labels.rack, "r2");
    assert.notEqual(replica("b:1"), b);
    assert.equal(b.removed, true);
    assert.equal(replica("b:1").lifecycle.state, "probing");
  });

  it("makes each data-parallel rank a replica of its own, with its own metrics, over one endpoint", () => {
    const fleet = new Fleet();
    fleet.applyEndpoints("list", [endpoint("a:1"), endpoint("b:1", { dataParallelRanks: 2 })], 0);
    fleet.applyProfile("a:1", profile({ dataParallelRanks: 3 }), 0);
    assert.deepEqual(ids(fleet).toSorted(), ["a:1#0", "a:1#1", "a:1#2", "b:1#0", "b:1#1"]);
    fleet.applyHealth("a:1", "ready", 0);
    const byRank = new Map([0, 1, 2].map((rank) => [rank, metrics({ runningRequests: rank })]));
    fleet.applyScrape("a:1", { byRank, missing: [] }, 0);
    assert.deepEqual(
      fleet.ofEndpoint("a:1").map((one) => one.load.at(0).sequences),
      [0, 1, 2],
    );
    const indices = fleet.replicas().map(({ index }) => index);
    assert.equal(new Set(indices).size, indices.length);
    assert.ok(indices.every((index) => index < fleet.indexBound));
    const before = fleet.ofEndpoint("a:1");
    fleet.applyProfile("a:1", profile({ dataParallelRanks: 3 }), 1);
    assert.deepEqual(fleet.ofEndpoint("a:1"), before, "probing again changes nothing");
  });

  it("reuses the index of a removed replica without what was known under it", () => {
    const { fleet, clock, replica } = readyFleet(["a:1", "b:1"]);
    const old = replica("a:1");
    const placed = fleet.index.place(old.index, chain(1, 2), clock.nowMs());
    const reservation = fleet.ledger.reserve(request(), old, 0, 10, clock.nowMs());
    fleet.applyEndpoints("list", [endpoint("b:1")], clock.nowMs());
    fleet.applyEndpoints("list", [endpoint("b:1"), endpoint("c:1")], clock.nowMs());
    const heir = replica("c:1");
    assert.equal(heir.index, old.index);
    assert.equal(fleet.indexBound, 2);
    assert.equal(hits(fleet, heir.index, 1, 2), 0);
    fleet.index.confirm(placed, clock.nowMs());
    fleet.ledger.firstToken(reservation, clock.nowMs());
    fleet.ledger.release(reservation, clock.nowMs());
    assert.equal(hits(fleet, heir.index, 1, 2), 0);
    assert.equal(heir.load.sequences, 0);
    assert.notEqual(heir.incarnation, old.incarnation);
  });

  it("voids everything of a process that was replaced at the same address, and tells so", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const a = replica("a:1");
    fleet.index.confirm(fleet.index.place(a.index, chain(1, 2), clock.nowMs()), clock.nowMs());
    fleet.ledger.reserve(request(), a, 0, 10, clock.nowMs());
    fleet.applyMetrics(a, metrics({ runningRequests: 9, residentAdapters: ["x"] }), clock.nowMs());
    const told: string[] = [];
    const stop = fleet.onChange(({ kind, replica: of }) => told.push(`${kind} ${of.id}`));
    const before = a.incarnation;
    fleet.endpointRestarted("a:1", clock.nowMs());
    assert.notEqual(a.incarnation, before);
    assert.equal(a.load.at(clock.nowMs()).sequences, 0);
    assert.equal(hits(fleet, a.index, 1, 2), 0);
    assert.equal(a.adapters.resident.size, 0);
    assert.equal(a.metrics, null);
    assert.ok(told.includes("restarted a:1"));
    fleet.applyHealth("a:1", "ready", clock.nowMs());
    assert.equal(a.lifecycle.state, "ready");
    stop();
    const heard = told.length;
    fleet.endpointRestarted("a:1", clock.nowMs());
    assert.equal(told.length, heard);
  });

  it("joins the models, finds the base of an adapter and keeps models whose replicas are down", () => {
    const { fleet, clock } = readyFleet(["a:1", "b:1"]);
    fleet.applyModels(
      "a:1",
      [base("m", 4_000), { id: "lora", parent: "/models/m", maxModelTokens: null }],
      clock.nowMs(),
    );
    fleet.applyModels("b:1", [base("m", 8_000), base("n")], clock.nowMs());
    fleet.applyHealth("a:1", "unreachable", clock.nowMs());
    assert.deepEqual(fleet.models(), [
      { id: "m", parent: null, maxModelTokens: 8_000 },
      { id: "lora", parent: "m", maxModelTokens: null },
      { id: "n", parent: null, maxModelTokens: null },
    ]);
    assert.deepEqual(fleet.resolve("lora"), { model: "m", adapter: "lora" });
    assert.deepEqual(fleet.resolve("n"), { model: "n", adapter: null });
    assert.equal(fleet.resolve("x"), null);
    assert.equal(fleet.pool("m").length, 2);
    assert.equal(fleet.pool("n").length, 1);
  });

  it("says of an unreachable replica why, as it is now", () => {
    const { fleet, clock } = readyFleet(["a:1"]);
    const why = () => fleet.conditions.list().find(({ key }) => key === "replica_unreachable");
    for (let at = 0; at < 3; at++) fleet.applyHealth("a:1", "silent", clock.nowMs());
    const hung = why();
    assert.match(hung?.message ?? "", /does not answer its health probes/);
    clock.advance(1_000);
    fleet.applyHealth("a:1", "unreachable", clock.nowMs());
    assert.match(why()?.message ?? "", /takes no connections/);
    assert.equal(why()?.sinceMs, hung?.sinceMs, "it has not been reachable meanwhile");
    fleet.applyHealth("a:1", "ready", clock.nowMs());
    assert.equal(why(), undefined);
  });

  it("takes limits from metrics, then from the profile, and says when it has to assume them", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    assert.equal(replica("a:1").limits().assumed.length, 2);
    assert.equal(fleet.conditions.has("limits_assumed", "a:1"), true);
    fleet.applyProfile("a:1", profile({ maxRunningRequests: 32, kvCapacityTokens: 1_000 }), clock.nowMs());
    fleet.applyMetrics(replica("a:1"), metrics({ kvCapacityTokens: 2_000 }), clock.nowMs());
    assert.deepEqual(replica("a:1").limits(), {
      maxRunningRequests: 32,
      kvCapacityTokens: 2_000,
      kvBlockTokens: 16,
      assumed: [],
    });
    assert.equal(fleet.conditions.has("limits_assumed", "a:1"), false);
  });

  it("expects no cached prefixes of an engine that has caching switched off", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const { index } = replica("a:1");
    fleet.applyMetrics(replica("a:1"), metrics({ prefixCachingEnabled: false }), clock.nowMs());
    fleet.index.confirm(fleet.index.place(index, chain(1, 2), clock.nowMs()), clock.nowMs());
    assert.equal(hits(fleet, index, 1, 2), 0);
    assert.equal(fleet.conditions.has("prefix_caching_off", "a:1"), true);
  });

  it("says so when metrics grow old, and when they are back", () => {
    const { fleet, clock, replica } = readyFleet(["a:1", "b:1"], { metricsStaleMs: 10_000 });
    fleet.applyMetrics(replica("a:1"), metrics(), clock.nowMs());
    clock.advance(10_000);
    fleet.tick(clock.nowMs());
    assert.equal(fleet.conditions.has("metrics_stale", "a:1"), false);
    clock.advance(1);
    fleet.tick(clock.nowMs());
    assert.equal(fleet.conditions.has("metrics_stale", "a:1"), true);
    assert.equal(fleet.conditions.has("metrics_stale", "b:1"), true, "never had any");
    fleet.applyMetrics(replica("a:1"), metrics(), clock.nowMs());
    assert.equal(fleet.conditions.has("metrics_stale", "a:1"), false);
    fleet.applyEndpoints("list", [endpoint("a:1")], clock.nowMs());
    assert.equal(fleet.conditions.has("metrics_stale", "b:1"), false, "removed with its replica");
  });

  it("says loudly which metrics an engine lacks", () => {
    const { fleet, clock } = readyFleet(["a:1"]);
    const byRank = new Map([[0, metrics({ runningRequests: 1 })]]);
    fleet.applyScrape("a:1", { byRank, missing: ["kvUsage"] }, clock.nowMs());
    const found = fleet.conditions.list().find(({ key }) => key === "metric_missing");
    assert.match(found?.message ?? "", /kvUsage/);
    fleet.applyScrape("a:1", { byRank, missing: [] }, clock.nowMs());
    assert.equal(fleet.conditions.has("metric_missing", "a:1"), false);
  });

  it("says when a replica's reported hits stay far behind the predicted ones", () => {
    const { fleet, clock, replica } = readyFleet(["a:1"]);
    const { index } = replica("a:1");
    for (let at = 0; at < 100; at++) {
      const placed = fleet.index.place(index, chain(1, 2, 3, 4), clock.nowMs());
      fleet.index.confirm(placed, clock.nowMs());
      fleet.index.correct(placed, 0);
    }
    fleet.tick(clock.nowMs());
    assert.equal(fleet.conditions.has("index_distrusted", "a:1"), true);
  });

  it("takes an avoided slow replica to be like its peers again after a while, but not one that is observed", () => {
    // An alias is a second pool of the same replicas.
    const { fleet, clock, replica } = readyFleet(["a:1", "b:1", "c:1"], {}, { models: [base("m"), base("alias")] });
    const observe = (id: string, by: number): void => {
      const { latency } = replica(id);
      for (let at = 0; at < 40; at++) latency.observeStep(8, 8_000, by * 7);
    };
    observe("b:1", 1);
    observe("c:1", 1);
    observe("a:1", 3);
    const { latency } = replica("a:1");
    const slow = latency.stepSlowness;
    for (let second = 0; second < 60; second++) {
      clock.advance(1000);
      for (const id of ["a:1", "b:1", "c:1"]) replica(id).latency.observeStep(8, 8_000, id === "a:1" ? 21 : 7);
      fleet.tick(clock.nowMs());
    }
    assert.ok(latency.stepSlowness > 0.9 * slow);
    clock.advance(3_600_000);
    fleet.tick(clock.nowMs());
    assert.ok(latency.stepSlowness > 0.9 * slow, "an idle fleet forgets nothing");
    for (let second = 0; second < 120; second++) {
      clock.advance(1000);
      observe("b:1", 1);
      observe("c:1", 1);
      fleet.tick(clock.nowMs());
    }
    assert.ok(latency.stepSlowness < 1.15 * replica("b:1").latency.stepSlowness);
  });

  it("is bounded, and says what it left out", () => {
    const fleet = new Fleet({ maxReplicas: 2 });
    fleet.applyEndpoints("list", [endpoint("a:1"), endpoint("b:1"), endpoint("c:1")], 0);
    assert.deepEqual(ids(fleet), ["a:1", "b:1"]);
    assert.equal(fleet.conditions.has("replica_limit_reached", null), true);
    fleet.applyEndpoints("list", [endpoint("b:1"), endpoint("c:1")], 1);
    assert.deepEqual(ids(fleet), ["b:1", "c:1"]);
    assert.equal(fleet.conditions.has("replica_limit_reached", null), false);
  });

  it("hears the monitor", () => {
    const fleet = new Fleet();
    const [at] = [endpoint("a:1")];
    fleet.applyEndpoints("list", [at], 0);
    const listener = monitored(fleet);
    listener.health(at, "unreachable", 0);
    assert.equal(fleet.byId("a:1")?.lifecycle.state, "unreachable");
    listener.identified(at, profile(), 1);
    listener.health(at, "ready", 1);
    listener.metrics(at, { byRank: new Map([[0, metrics({ runningRequests: 4 })]]), missing: [] }, 1);
    listener.models(at, [base("m"), base("n")], 1);
    const a = fleet.byId("a:1");
    assert.equal(a?.lifecycle.state, "ready");
    assert.equal(a.load.at(1).sequences, 4);
    assert.equal(fleet.pool("n").length, 1);
    const before = a.incarnation;
    listener.restarted(at, 2);
    assert.notEqual(a.incarnation, before);
  });
});
