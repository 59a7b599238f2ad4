import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { run } from "#src/simulator/run.ts";
import { arrival, engine, engines, fixed, router, settings } from "./harness.ts";

describe("a run", () => {
  it("times a lone request by the engine's steps and the network", () => {
    const { world } = run(
      settings({ engines: engines(1), networkMs: 3 }),
      fixed([arrival(100, { promptTokens: 1_000, content: { ids: [1], tokens: 1_000 }, outputTokens: 3 })]),
    );
    const [record] = world.records;
    assert.equal(record!.ending, "answered");
    assert.equal(record!.reachedMs, 103);
    // 1 ms + 10 ms for the prompt, then steps of 5 ms + 0.1 ms + 0.01 ms for each of 1,001 and 1,002 thousandths.
    assert.ok(Math.abs(record!.firstTokenMs - 114) < 1e-9);
    assert.ok(Math.abs(record!.endedMs - (114 + 5.1 + 0.01001 + 5.1 + 0.01002)) < 1e-9);
  });

  it("finds the prefix that an earlier prompt left, and counts on it", () => {
    const content = { ids: [1], tokens: 320 };
    const { world } = run(
      settings(),
      fixed([0, 5_000].map((atMs) => arrival(atMs, { content, promptTokens: 320, outputTokens: 20 }))),
    );
    const [first, second] = world.records;
    assert.equal(first!.cachedTokens, 0);
    assert.equal(second!.cachedTokens, 304);
    assert.equal(second!.engine, first!.engine);
    // All 20 blocks are there, but an engine computes the last token again, and so its block.
    assert.ok(Math.abs(second!.predictedCachedTokens - 304) <= 16);
  });

  it("finds an answer in the next prompt that contains it", () => {
    const first = arrival(0, { content: { ids: [1], tokens: 100 }, outputTokens: 60, answerId: 77 });
    const second = arrival(5_000, { content: { ids: [1, 77, 2], tokens: [100, 60, 40] }, promptTokens: 200 });
    const { world } = run(settings({ engines: engines(1) }), fixed([first, second]));
    // 159 of its 160 tokens: the last one's KV is never computed.
    assert.equal(world.records[1]!.cachedTokens, 144);
  });

  it("refuses what fits no engine, and what waits too long", () => {
    const { world } = run(
      settings({
        engines: engines(1, { maxRunning: 1, kvBlocks: 100 }),
        queue: { maxRequests: 10, maxBytes: 1e9, maxWaitMs: 100 },
      }),
      fixed([
        arrival(0, { promptTokens: 1_700, content: { ids: [5], tokens: 1 } }),
        arrival(10, { outputTokens: 100 }),
        arrival(11),
      ]),
    );
    assert.deepEqual(
      world.records.map(({ ending, code }) => [ending, code]),
      [
        ["refused", "too_large_for_engine"],
        ["answered", null],
        ["refused", "queue_timeout"],
      ],
    );
    assert.ok(world.records[2]!.endedMs - 11 >= 100 && world.records[2]!.endedMs - 11 < 160);
  });

  it("without a queue leaves all waiting to the engines", () => {
    const { world } = run(
      settings({ engines: engines(1, { maxRunning: 1 }), router: router("round-robin", "immediate") }),
      fixed([arrival(0), arrival(1), arrival(2)]),
    );
    assert.deepEqual(
      world.records.map(({ boundMs }) => boundMs),
      [0, 1, 2],
    );
    assert.ok(world.records[2]!.scheduledMs > world.records[1]!.endedMs - 1e-9);
  });

  it("places again what a dying engine had, unless its answer had begun", () => {
    const { world } = run(
      settings({
        engines: engines(2, { maxRunning: 8 }),
        router: router("round-robin"),
        incidents: [{ kind: "crash", atMs: 200, engine: 0, downMs: 3_000, loadMs: 2_000 }],
      }),
      fixed([
        ...[0, 1].map((atMs) => arrival(atMs, { outputTokens: 100 })),
        ...[190, 191].map((atMs) => arrival(atMs, { promptTokens: 5_000, content: { ids: [atMs], tokens: 5_000 } })),
        arrival(210),
        ...[9_000, 9_001].map((atMs) => arrival(atMs)),
      ]),
    );
    const { records } = world;
    const outcome = ({ ending, code, attempts, engine: at }: (typeof records)[number]) => [ending, code, attempts, at];
    const byEnding = (a: unknown[], b: unknown[]) => String(a[0]).localeCompare(String(b[0]));
    const byAttempts = (a: unknown[], b: unknown[]) => Number(a[2]) - Number(b[2]);
    // Which engine comes first is a matter of chance; each got one of the first two, and one of the long prompts.
    assert.deepEqual(records.slice(0, 2).map(outcome).sort(byEnding), [
      ["answered", null, 1, 1],
      ["failed", "engine_unreachable", 1, 0],
    ]);
    assert.deepEqual(records.slice(2, 4).map(outcome).sort(byAttempts), [
      ["answered", null, 1, 1],
      ["answered", null, 2, 1],
    ]);
    assert.deepEqual(outcome(records[4]!).slice(0, 2).concat(records[4]!.engine), ["answered", null, 1]);
    // The new process is found, and used.
    assert.deepEqual(new Set(records.slice(5).map(({ engine: at }) => at)), new Set([0, 1]));
  });

  it("knows an engine that starts cold only when it is ready", () => {
    const { world } = run(
      settings({
        router: router("round-robin"),
        incidents: [{ kind: "crash", atMs: 0, engine: 1, downMs: 1_000, loadMs: 5_000 }],
      }),
      fixed(Array.from({ length: 20 }, (_, at) => arrival(1 + at * 500))),
    );
    const early = world.records.filter(({ arrivedMs }) => arrivedMs < 6_000);
    const late = world.records.filter(({ arrivedMs }) => arrivedMs > 7_000);
    assert.ok(early.every((record) => record.engine === 0));
    assert.ok(late.some((record) => record.engine === 1));
  });

  it("learns that a replica is slower than it is told", () => {
    const { world } = run(
      settings({
        engines: [engine("slow"), engine("fast")].map((one, at) => ({ ...one, slowFactor: at === 0 ? 3 : 1 })),
      }),
      fixed(Array.from({ length: 600 }, (_, at) => arrival(at * 50, { outputTokens: 30 }))),
    );
    const late = world.records.slice(300);
    const slow = late.filter(({ engine: index }) => index === 0).length;
    assert.ok(slow < 0.4 * late.length, `${slow} of ${late.length} went to the slow one`);
  });

  it("with KV events knows exactly what is cached, whoever put it there", () => {
    const content = (own: number) => ({ ids: [1, own], tokens: [480, 100] });
    const { world } = run(
      settings({ routers: 2, events: { delayMs: 1, lossShare: 0.4, replayMs: 300 } }),
      fixed(
        Array.from({ length: 40 }, (_, at) =>
          arrival(at * 400, { content: content(10 + (at % 7)), promptTokens: 580, outputTokens: 60 }),
        ),
      ),
    );
    const late = world.records.slice(20);
    for (const { number, cachedTokens, predictedCachedTokens } of late)
      // An engine computes the last token again, and so its block.
      assert.ok(Math.abs(predictedCachedTokens - cachedTokens) <= 16, `request ${number}`);
    assert.ok(late.every(({ cachedTokens }) => cachedTokens >= 464));
    for (const { fleet } of world.routers)
      for (const { index } of fleet.replicas()) assert.equal(fleet.index.view(index).state.state, "live");
  });

  it("forgets the step that a dying engine was in", () => {
    const long = (atMs: number) =>
      arrival(atMs, { promptTokens: 1_000, content: { ids: [atMs], tokens: 1_000 }, outputTokens: 1 });
    const { world } = run(
      settings({
        engines: engines(1),
        router: router("round-robin", "immediate"),
        incidents: [{ kind: "crash", atMs: 5, engine: 0, downMs: 0, loadMs: 0 }],
      }),
      fixed([long(0), long(6)]),
    );
    assert.equal(world.records[0]!.ending, "failed");
    // One millisecond to get there, eleven for the prompt; the dead process's step would have ended at 12.
    assert.equal(world.records[1]!.firstTokenMs, 18);
  });

  it("takes the cache of a restarted engine as empty, with KV events", () => {
    const content = { ids: [1], tokens: 320 };
    const same = (atMs: number) => arrival(atMs, { content, promptTokens: 320 });
    const { world } = run(
      settings({
        engines: engines(1),
        events: { delayMs: 1, lossShare: 0, replayMs: 0 },
        incidents: [{ kind: "crash", atMs: 2_000, engine: 0, downMs: 500, loadMs: 500 }],
      }),
      fixed([same(0), same(1_000), same(8_000), same(9_000)]),
    );
    assert.deepEqual(
      world.records.map(({ cachedTokens }) => cachedTokens),
      [0, 304, 0, 304],
    );
    assert.equal(world.records[2]!.predictedCachedTokens, 0);
    assert.ok(world.records[3]!.predictedCachedTokens >= 304);
  });

  it("lets routers that know nothing of each other share the engines", () => {
    const { world } = run(settings({ routers: 3 }), fixed(Array.from({ length: 60 }, (_, at) => arrival(at * 5))));
    assert.ok(world.routers.every(({ fleet }) => fleet.outputLengths.size > 0));
    assert.ok(world.records.every(({ ending }) => ending === "answered"));
  });

  it("shows a router other routers' load through metrics, when these come", () => {
    const foreign = (scrapeLossShare: number) => {
      let seen = 0;
      const { world } = run(
        settings({
          engines: engines(1),
          routers: 2,
          monitor: { scrapeEveryMs: 100, scrapeDelayMs: 10, scrapeLossShare, healthEveryMs: 1_000 },
        }),
        fixed(Array.from({ length: 50 }, (_, at) => arrival(at * 20, { outputTokens: 200 }))),
        {
          onArrival({ router: { fleet } }) {
            const [replica] = fleet.replicas();
            // At the time of the last scrape: there, foreign load counts in full.
            seen = Math.max(seen, replica!.load.at(replica!.metrics?.atMs ?? 0).foreignSequences);
          },
        },
      );
      assert.ok(world.over);
      return seen;
    };
    assert.ok(foreign(0) > 5);
    assert.equal(foreign(1), 0);
  });
});
