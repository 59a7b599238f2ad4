import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "#src/determinism/clock.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import { ManualTimers } from "#src/determinism/timers.ts";
import type { AskEngine } from "#src/engines/engineAdapter.ts";
import { ByteBudget } from "#src/engines/events/stream/inbox.ts";
import { DEFAULT_STREAM_SETTINGS } from "#src/engines/events/stream/streamTools.ts";
import { Turns } from "#src/engines/events/stream/turns.ts";
import { zmqSockets } from "#src/engines/events/stream/zmqSockets.ts";
import { PulledEvents } from "#src/engines/events/trtllm/pulledEvents.ts";
import { TrtPullStream } from "#src/engines/events/trtllm/pullStream.ts";
import { HeldBlocks } from "./heldBlocks.ts";
import { refuses } from "../recordedEngine.ts";

/** Above 2^53: what JSON.parse would round. */
const BIG = "16140901064495857665";
const NEGATIVE = "-3488128144981237669";

function block(hash: string, tokens: readonly (number | string)[], level = 0, more = ""): string {
  const list = tokens.map((id) => `{"type":"unique_token","token_id":${JSON.stringify(id)},"token_extra_id":0}`);
  return `{"type":"stored_block","block_hash":${hash},"tokens":[${list.join()}],"cache_level":${level},"priority":35${more}}`;
}

function storedEvent(id: number, parent: string, blocks: readonly string[], window = 4096, more = ""): string {
  return `{"event_id":${id},"data":{"type":"stored","parent_hash":${parent},"blocks":[${blocks.join()}]},"window_size":${window}${more}}`;
}

function removedEvent(id: number, ...hashes: string[]): string {
  return `{"event_id":${id},"data":{"type":"removed","block_hashes":[${hashes.join(", ")}]},"window_size":4096}`;
}

const list = (...events: string[]) => `[${events.join()}]`;

function read(body: string, blockTokens: number | null = 2) {
  const events = new PulledEvents(blockTokens).read(body);
  assert.ok(events !== null);
  return events;
}

describe("TensorRT-LLM's pulled events", () => {
  it("keep all 64 bits of their hashes", () => {
    const [pulled] = read(list(storedEvent(4, BIG, [block(NEGATIVE, [1, 2]), block("7", [3, 4])])));
    assert.deepEqual(pulled, {
      eventId: 4,
      rank: 0,
      events: [
        {
          kind: "stored",
          engineHashes: BigUint64Array.of(2n ** 64n + BigInt(NEGATIVE), 7n),
          parent: BigInt(BIG),
          tokenIds: Uint32Array.of(1, 2, 3, 4),
          blockTokens: 2,
          tier: "gpu",
          group: 4096,
          fullAttention: true,
          loraName: null,
          salt: null,
          blockKeys: null,
        },
      ],
    });
    const [removed] = read(list(removedEvent(5, BIG, NEGATIVE, "7")));
    assert.deepEqual(removed?.events, [
      {
        kind: "removed",
        engineHashes: BigUint64Array.of(BigInt(BIG), 2n ** 64n + BigInt(NEGATIVE), 7n),
        tier: null,
        group: 4096,
      },
    ]);
  });

  it("are told by level, and move between levels", () => {
    const [stored] = read(
      list(storedEvent(0, "null", [block("1", [1, 2]), block("2", [3, 4], 1), block("3", [5, 6], 1)])),
    );
    const runs = stored?.events?.map((event) =>
      event.kind === "stored" ? [event.tier, event.parent, event.engineHashes.length] : [],
    );
    assert.deepEqual(runs, [
      ["gpu", null, 1],
      ["host", 1n, 2],
    ]);
    const [moved, priority] = read(
      list(
        `{"event_id":1,"data":{"type":"updated","block_hash":${BIG},"cache_level":{"type":"event_diff","new_value":1,"old_value":0}},"window_size":4096}`,
        `{"event_id":2,"data":{"type":"updated","block_hash":1,"priority":{"type":"event_diff","new_value":9,"old_value":1}},"window_size":4096}`,
      ),
    );
    assert.deepEqual(moved?.events, [
      { kind: "moved", engineHashes: BigUint64Array.of(BigInt(BIG)), from: "gpu", to: "host", group: 4096 },
    ]);
    assert.deepEqual(priority?.events, []);
  });

  it("leave out blocks that are not full", () => {
    const chain = list(storedEvent(0, "null", [block("1", [1, 2, 3]), block("2", [4, 5])]));
    const [known] = read(chain, null);
    assert.deepEqual(
      known?.events?.map((event) => event.kind === "stored" && event.blockTokens),
      [3],
    );
    const [single] = read(list(storedEvent(0, "null", [block("1", [1, 2, 3])])), null);
    assert.deepEqual(single?.events, [], "nothing shows how long a full block is");
    const reader = new PulledEvents(null);
    reader.read(chain);
    const [later] = reader.read(list(storedEvent(1, "1", [block("5", [7, 8, 9])]))) ?? [];
    assert.equal(later?.events?.length, 1);
  });

  it("leave out the removal of blocks that were not full, and of so many at most", () => {
    const reader = new PulledEvents(2);
    const kinds = (...events: string[]) =>
      reader
        .read(list(...events))!
        .map(({ events }) =>
          events!.map((event) => [event.kind, "engineHashes" in event && event.engineHashes.length]),
        );
    assert.deepEqual(kinds(storedEvent(0, "null", [block("1", [1, 2]), block(BIG, [3])])), [[["stored", 1]]]);
    assert.deepEqual(kinds(removedEvent(1, BIG), removedEvent(2, BIG, "1")), [[], [["removed", 2]]]);
    for (let id = 0; id <= 65_536; id++) reader.read(list(storedEvent(id, "null", [block(`${id + 10}`, [3])])));
    assert.deepEqual(kinds(removedEvent(3, "11"), removedEvent(4, "10")), [[], [["removed", 1]]]);
  });

  it("are of full attention in the largest window only", () => {
    const created = `{"event_id":0,"data":{"type":"created","num_blocks_per_cache_level":[10,0]},"window_size":4096}`;
    const events = read(
      list(created, storedEvent(1, "null", [block("1", [1, 2])], 512), storedEvent(2, "null", [block("1", [1, 2])])),
    );
    const full = events.map(({ events }) => events?.map((event) => event.kind === "stored" && event.fullAttention));
    assert.deepEqual(full, [[], [false], [true]]);
  });

  it("tell media and what is no token apart", () => {
    const media = `,"mm_keys":[{"type":"mm_key","hash":"ab","start_offset":1}]`;
    const [pulled] = read(list(storedEvent(0, "null", [block("1", [1, 2], 0, media), block("2", ["x", 4])])));
    const [event] = pulled?.events ?? [];
    assert.ok(event?.kind === "stored");
    assert.deepEqual(event.blockKeys, ["ab@1", "x@0"]);
    assert.deepEqual([...event.tokenIds], [1, 2, 0xffff_ffff, 4]);
  });

  it("are counted by rank, and unreadable one by one", () => {
    const events = read(
      list(
        storedEvent(0, "null", [block("1", [1, 2])], 4096, `,"attention_dp_rank":3`),
        `{"event_id":1,"data":{"type":"removed","block_hashes":"none"},"window_size":4096}`,
        `{"event_id":2,"data":{"type":"stored","parent_hash":null},"window_size":4096}`,
        `{"event_id":3,"data":{"type":"stored","parent_hash":"x","blocks":[]},"window_size":4096}`,
        `{"event_id":4,"data":7}`,
        `{"event_id":5,"data":{"type":"new"}}`,
        `7`,
      ),
    );
    assert.deepEqual(
      events.map(({ eventId, rank, events }) => [eventId, rank, events?.length ?? null]),
      [
        [0, 3, 1],
        [1, 0, null],
        [2, 0, null],
        [3, 0, null],
        [4, 0, null],
        [5, 0, 0],
      ],
    );
    const reader = new PulledEvents(null);
    for (const body of ["", "{}", "[", "null", "Not Found"]) assert.equal(reader.read(body), null);
  });
});

/** An engine whose next answers a test sets. */
function setUp() {
  const clock = new ManualClock();
  const timers = new ManualTimers(clock);
  const view = new HeldBlocks();
  const engine: { ask: AskEngine; bodies: string[]; asked: number } = { ask: refuses, bodies: [], asked: 0 };
  const answering: AskEngine = (path, options) => {
    assert.deepEqual([path, options?.method], ["/kv_cache_events", "POST"]);
    engine.asked++;
    return Promise.resolve({ status: 200, headers: {}, body: engine.bodies.shift() ?? "[]" });
  };
  engine.ask = answering;
  const stream = new TrtPullStream(
    (path, options) => engine.ask(path, options),
    () => view,
    {
      clock,
      timers,
      random: new SeededRandom(1),
      turns: new Turns(queueMicrotask),
      budget: new ByteBudget(0),
      sockets: zmqSockets,
      settings: DEFAULT_STREAM_SETTINGS,
    },
    2,
  );
  return { timers, view, engine, answering, stream };
}

describe("pulling from TensorRT-LLM", () => {
  const one = (id: number, hash: string) => storedEvent(id, "null", [block(hash, [1, 2])]);

  it("tells what each answer holds, and whether it goes back to the start", async () => {
    const { timers, view, engine, stream } = setUp();
    engine.bodies.push(list(one(0, "1"), one(1, "2")), "[]", list(removedEvent(2, "1")));
    await timers.advance(1000);
    assert.deepEqual(view.history, { sinceSeq: 0, complete: true });
    assert.deepEqual(view.seqs, [0, 1, 2]);
    assert.deepEqual(view.story, ["live"]);
    stream.stop();
  });

  it("tells of events that say nothing of full blocks too, so that none is missing", async () => {
    const { timers, view, engine, stream } = setUp();
    engine.bodies.push(list(one(0, "1"), storedEvent(1, "1", [block("2", [3])]), removedEvent(2, "2"), one(3, "4")));
    await timers.advance(100);
    assert.deepEqual(view.seqs, [0, 1, 2, 3]);
    assert.deepEqual([...view.counts.keys()], ["gpu 1", "gpu 4"]);
    stream.stop();
  });

  it("is not complete where the first event is not the engine's first", async () => {
    const { timers, view, engine, stream } = setUp();
    engine.bodies.push(list(one(7, "1")));
    await timers.advance(10);
    assert.deepEqual(view.history, { sinceSeq: 7, complete: false });
    stream.stop();
  });

  it("drops the view where events are missing, and where another process counts from the start", async () => {
    const { timers, view, engine, stream } = setUp();
    engine.bodies.push(list(one(0, "1")), list(one(2, "2")), list(one(0, "3"), one(1, "4")));
    await timers.advance(300);
    assert.deepEqual(view.story, ["live", "lost gap", "live"]);
    assert.deepEqual([...view.counts.keys()], ["gpu 2"]);
    await timers.advance(300);
    assert.deepEqual(view.story, ["live", "lost gap", "live", "restarted", "live"]);
    assert.deepEqual([...view.counts.keys()], ["gpu 3", "gpu 4"]);
    stream.stop();
  });

  it("reports an engine that does not answer so, asks ever more seldom, and goes on", async () => {
    const { timers, view, engine, answering, stream } = setUp();
    engine.bodies.push(list(one(0, "1")));
    await timers.advance(10);
    engine.ask = () => Promise.resolve({ status: 404, headers: {}, body: "Not Found" });
    await timers.advance(60_000);
    assert.deepEqual(view.story, ["live", "failed"]);
    engine.ask = answering;
    engine.bodies.push(list(one(1, "2")));
    await timers.advance(10_000);
    assert.deepEqual(view.story, ["live", "failed", "live"]);
    assert.equal(view.counts.size, 2);
    stream.stop();
    const { asked } = engine;
    await timers.advance(10_000);
    assert.equal(engine.asked, asked);
  });
});
