import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CachedTokens } from "#src/fleet/cachedTokens.ts";
import { Fleet, type FleetChange } from "#src/fleet/fleet.ts";
import { kvEventsToFleet } from "#src/fleet/precise/kvEventsToFleet.ts";
import type { Identity } from "#src/request/identity.ts";
import { chainRoot, tokenChain } from "#src/request/tokens/tokenChain.ts";
import { endpoint, metrics, profile, readyFleet } from "../samples.ts";
import { batch, CLEARED, named, removed, stored, tokens } from "./kvEvents.ts";

const COMPLETE = { sinceSeq: 0, complete: true };

function keysOf({ conditions }: Fleet, replicaId: string | null): string[] {
  return conditions
    .list()
    .filter((one) => one.replicaId === replicaId)
    .map(({ key }) => key)
    .toSorted();
}

function identity(count: number, blockTokens: number): Identity {
  return {
    hashes: tokenChain(chainRoot(null, null, blockTokens), tokens(0, count), blockTokens),
    blockTokens,
    promptTokens: count,
    promptBytes: 4 * count,
    approximate: false,
    unhashable: null,
  };
}

describe("KV events on their way into the fleet", () => {
  it("reach the replica of their endpoint and rank, and nobody where there is none", () => {
    const { fleet, replica } = readyFleet(["a:1", "b:1"], {}, { dataParallelRanks: 2 });
    const events = kvEventsToFleet(fleet);
    events.live(endpoint("b:1"), 1, COMPLETE, 5);
    events.live(endpoint("b:1"), 7, COMPLETE, 5);
    events.batch(endpoint("gone:1"), 0, batch(0, stored([1])), 5);
    events.batch(endpoint("b:1"), 1, batch(0, stored([1, 2])), 6);
    assert.deepEqual(
      fleet.replicas().map(({ id, index }) => [id, fleet.index.view(index).state.state, fleet.index.heldBy(index)]),
      [
        ["a:1#0", "absent", 0],
        ["a:1#1", "absent", 0],
        ["b:1#0", "absent", 0],
        ["b:1#1", "live", 2],
      ],
    );
    assert.equal(fleet.index.isExact(replica("b:1#1").index), true);
  });

  it("raise and clear what an operator must know", () => {
    const { fleet } = readyFleet(["a:1", "b:1"]);
    const events = kvEventsToFleet(fleet);
    const a = endpoint("a:1");
    const message = (replicaId: string | null) =>
      fleet.conditions.list().find((one) => one.key === "index_approximate" && one.replicaId === replicaId)?.message;
    const silent = "Cached prefixes are inferred from own traffic:";
    assert.equal(message(null), `${silent} no replica publishes KV events.`);
    events.batch(a, 0, batch(3, stored([1])), 10);
    assert.equal(message(null), `${silent} 1 of 2 do not publish KV events.`);
    assert.match(message("a:1")!, /being replayed \(1 batches so far\)/);
    events.live(a, 0, { sinceSeq: 3, complete: false }, 11);
    assert.match(message("a:1")!, /do not go back to its start/);
    events.batch(a, 0, batch(4, CLEARED), 12);
    assert.deepEqual(keysOf(fleet, "a:1"), ["limits_assumed"]);
    events.lost(a, 0, "gap", 13);
    assert.deepEqual(keysOf(fleet, "a:1"), ["events_gap", "index_approximate", "limits_assumed"]);
    events.live(a, 0, { sinceSeq: 9, complete: false }, 14);
    assert.deepEqual(keysOf(fleet, "a:1"), ["events_gap", "index_approximate", "limits_assumed"]);
    events.lost(a, 0, "rebuild", 15);
    events.live(a, 0, COMPLETE, 16);
    assert.deepEqual(keysOf(fleet, "a:1"), ["limits_assumed"]);
    events.failed(a, 0, "The stream was closed", 17);
    assert.match(message("a:1")!, /The stream was closed/);
    events.live(endpoint("b:1"), 0, COMPLETE, 18);
    assert.deepEqual(keysOf(fleet, null), []);
  });

  it("tell the fleet's listeners when a view's state changes, and only then", () => {
    const { fleet } = readyFleet(["a:1"]);
    const changes: FleetChange[] = [];
    fleet.onChange((change) => changes.push(change));
    const events = kvEventsToFleet(fleet);
    events.live(endpoint("a:1"), 0, COMPLETE, 1);
    for (let seq = 0; seq < 5; seq++) events.batch(endpoint("a:1"), 0, batch(seq, stored([seq + 1])), 2);
    events.failed(endpoint("a:1"), 0, "closed", 3);
    assert.deepEqual(
      changes.map(({ kind }) => kind),
      ["view", "view"],
    );
  });

  it("name an engine whose blocks do not fit those of its pool", () => {
    const { fleet } = readyFleet(["a:1", "b:1", "c:1"]);
    for (const id of ["a:1", "b:1", "c:1"]) fleet.applyProfile(id, profile({ kvBlockTokens: 16 }), 0);
    assert.equal(fleet.blockTokens("m"), 16);
    const events = kvEventsToFleet(fleet);
    for (const id of ["a:1", "b:1", "c:1"]) events.live(endpoint(id), 0, COMPLETE, 1);
    events.batch(endpoint("a:1"), 0, batch(0, stored([1, 2], { blockTokens: 16 })), 2);
    events.batch(endpoint("b:1"), 0, batch(0, stored([1], { blockTokens: 32 })), 2);
    events.batch(endpoint("c:1"), 0, batch(0, stored([1], { blockTokens: 24 })), 2);
    assert.deepEqual(keysOf(fleet, "b:1"), ["limits_assumed"]);
    assert.deepEqual(keysOf(fleet, "c:1"), ["block_size_mismatch", "index_approximate", "limits_assumed"]);
    assert.match(fleet.conditions.list().find(({ key }) => key === "block_size_mismatch")!.message, /24 tokens/);

    const cached = new CachedTokens();
    cached.read(fleet, identity(33, 16), fleet.replicas());
    assert.deepEqual([cached.gpu[0], cached.gpu[1], cached.gpu[2]], [32, 32, 0]);
    // Of a block of 32 half a block is of no use.
    cached.read(fleet, identity(31, 16), fleet.replicas());
    assert.deepEqual([cached.gpu[0], cached.gpu[1], cached.gpu[2]], [16, 0, 0]);
  });

  it("of smaller blocks than the pool's make the others' views be told anew, whichever is known first", () => {
    for (const profilesFirst of [true, false]) {
      const fleet = new Fleet();
      fleet.applyEndpoints("list", [endpoint("a:1"), endpoint("b:1")], 0);
      const identify = (): void => {
        for (const id of ["a:1", "b:1"]) fleet.applyProfile(id, profile({ kvBlockTokens: null }), 0);
      };
      if (profilesFirst) identify();
      const events = kvEventsToFleet(fleet);
      for (const id of ["a:1", "b:1"]) events.live(endpoint(id), 0, COMPLETE, 1);
      events.batch(endpoint("a:1"), 0, batch(0, stored([1], { blockTokens: 32 })), 2);
      events.batch(endpoint("b:1"), 0, batch(0, stored([1, 2], { blockTokens: 16 })), 2);
      if (!profilesFirst) identify();
      assert.equal(fleet.blockTokens("m"), 16);
      const { state } = fleet.index.view(fleet.byId("a:1")!.index);
      assert.deepEqual(state, { state: "dropped", sinceMs: profilesFirst ? 2 : 0, why: "block_size", upToDate: true });
      assert.ok(keysOf(fleet, "a:1").includes("block_size_mismatch"));

      events.lost(endpoint("a:1"), 0, "rebuild", 3);
      events.batch(endpoint("a:1"), 0, batch(0, stored([1], { blockTokens: 32 })), 4);
      events.live(endpoint("a:1"), 0, COMPLETE, 5);
      const cached = new CachedTokens();
      cached.read(fleet, identity(33, 16), fleet.replicas());
      assert.deepEqual([cached.gpu[0], cached.gpu[1]], [32, 32]);
      assert.ok(!keysOf(fleet, "a:1").includes("block_size_mismatch"));
    }
  });

  it("leave no trace of a replica that is removed", () => {
    const { fleet } = readyFleet(["a:1", "b:1"]);
    const events = kvEventsToFleet(fleet);
    events.batch(endpoint("a:1"), 0, batch(0, stored([1, 2])), 1);
    events.lost(endpoint("a:1"), 0, "gap", 2);
    fleet.applyEndpoints("list", [endpoint("b:1")], 3);
    assert.equal(fleet.index.size, 0);
    assert.deepEqual(keysOf(fleet, "a:1"), []);
    fleet.applyEndpoints("list", [endpoint("b:1"), endpoint("c:1")], 4);
    assert.equal(fleet.index.view(fleet.byId("c:1")!.index).state.state, "absent");
  });

  it("bring a view that was dropped for others' sake into the conditions with the next tick", () => {
    const { fleet } = readyFleet(["a:1", "b:1"], { index: { maxHolders: 1024 } });
    const events = kvEventsToFleet(fleet);
    for (const id of ["a:1", "b:1"]) events.live(endpoint(id), 0, COMPLETE, 1);
    const many = (first: number) => Array.from({ length: 600 }, (_, at) => first + at);
    events.batch(endpoint("a:1"), 0, batch(0, stored(many(1)), stored([9_999], { tokenIds: tokens(50_000, 4) })), 2);
    events.batch(endpoint("b:1"), 0, batch(0, stored(many(1), { loraName: "x" })), 2);
    fleet.tick(3);
    assert.deepEqual(keysOf(fleet, "a:1"), ["index_approximate", "index_full", "limits_assumed"]);
    assert.deepEqual(keysOf(fleet, "b:1"), ["limits_assumed"]);
  });

  it("raise the alarm when a replica's cached tokens are persistently not those predicted", () => {
    const { fleet, replica } = readyFleet(["a:1"]);
    for (let at = 0; at < 20; at++) replica("a:1").cachePrediction.observe(160, 0, 16);
    fleet.tick(1);
    assert.ok(fleet.conditions.has("cache_prediction_off", "a:1"));
    fleet.endpointRestarted("a:1", 2);
    fleet.tick(3);
    assert.ok(!fleet.conditions.has("cache_prediction_off", "a:1"));
  });
});

describe("what candidates have cached of a prompt", () => {
  it("is what an engine will report: whole blocks, and never the last token", () => {
    const { fleet } = readyFleet(["a:1"]);
    const events = kvEventsToFleet(fleet);
    const blocks = Array.from({ length: 40 }, (_, at) => at + 1);
    events.live(endpoint("a:1"), 0, COMPLETE, 1);
    events.batch(endpoint("a:1"), 0, batch(0, stored(blocks, { blockTokens: 16 })), 2);
    const cached = new CachedTokens();
    const predicted = (count: number): number => {
      cached.read(fleet, identity(count, 16), fleet.replicas());
      return cached.gpu[0]!;
    };
    assert.equal(predicted(640), 624);
    assert.equal(predicted(641), 640);
    assert.equal(predicted(17), 16);
    assert.equal(predicted(16), 0);
    assert.equal(predicted(1_000), 640);
    assert.equal(cached.held[0], 640);
  });

  it("counts tiers one upon the other, and in what is held only GPU memory", () => {
    const { fleet } = readyFleet(["a:1"]);
    const events = kvEventsToFleet(fleet);
    events.live(endpoint("a:1"), 0, COMPLETE, 1);
    const offload = [named([3, 4], "host"), named([4], "disk"), removed([3, 4]), removed([4], "host")];
    events.batch(endpoint("a:1"), 0, batch(0, stored([1, 2, 3, 4], { blockTokens: 16 }), ...offload), 2);
    const cached = new CachedTokens();
    cached.read(fleet, identity(100, 16), fleet.replicas());
    assert.deepEqual([cached.gpu[0], cached.host[0], cached.disk[0], cached.held[0]], [32, 48, 64, 32]);
  });

  it("follows the pool's block size, which is the least that its engines report", () => {
    const { fleet, replica } = readyFleet(["a:1", "b:1"]);
    assert.equal(fleet.blockTokens("m"), null);
    assert.equal(fleet.blockTokens("nobody's"), null);
    fleet.applyMetrics(replica("a:1"), metrics({ kvBlockTokens: 32 }), 1);
    assert.equal(fleet.blockTokens("m"), 32);
    fleet.applyMetrics(replica("b:1"), metrics({ kvBlockTokens: 16 }), 1);
    assert.equal(fleet.blockTokens("m"), 16);
    // What an engine tells in its events counts more than what it reports.
    const events = kvEventsToFleet(fleet);
    events.batch(endpoint("a:1"), 0, batch(0, stored([1], { blockTokens: 8 })), 2);
    assert.equal(fleet.blockTokens("m"), 8);
    assert.equal(fleet.cacheBlockTokens(replica("a:1")), 8);
    assert.equal(fleet.cacheBlockTokens(replica("b:1")), 16);
  });
});
