import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { processClock } from "#src/determinism/clock.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import { processTimers } from "#src/determinism/timers.ts";
import { EventStream } from "#src/engines/events/stream/eventStream.ts";
import { ByteBudget } from "#src/engines/events/stream/inbox.ts";
import { DEFAULT_STREAM_SETTINGS, type StreamSettings } from "#src/engines/events/stream/streamTools.ts";
import { Turns } from "#src/engines/events/stream/turns.ts";
import { zmqSockets } from "#src/engines/events/stream/zmqSockets.ts";
import { HeldBlocks } from "../unit/engines/events/heldBlocks.ts";
import { batch as batchOfEvents, CLEARED, removed, stored } from "../unit/engines/events/wireEvents.ts";
import { ScriptedPublisher, type PublisherOptions } from "./scriptedPublisher.ts";

const SETTINGS: StreamSettings = {
  ...DEFAULT_STREAM_SETTINGS,
  connectFirstDelayMs: 10,
  connectMaxDelayMs: 40,
  answerLimitMs: 250,
  rebuildFirstDelayMs: 50,
};

async function start(t: TestContext, options: PublisherOptions = {}): Promise<ScriptedPublisher> {
  const publisher = await ScriptedPublisher.start(options);
  t.after(() => publisher.stop());
  return publisher;
}

interface FollowOptions {
  readonly settings?: Partial<StreamSettings>;
  readonly topic?: string;
  readonly hasReplay?: boolean;
  readonly queuedBytes?: number;
}

function follow(t: TestContext, publisher: ScriptedPublisher, options: FollowOptions = {}) {
  const { settings, topic = "", hasReplay = true, queuedBytes = 1 << 28 } = options;
  const view = new HeldBlocks();
  const budget = new ByteBudget(queuedBytes);
  const { events, replay } = publisher.ports;
  const stream = new EventStream(
    0,
    {
      events: `tcp://127.0.0.1:${events}`,
      replay: hasReplay ? `tcp://127.0.0.1:${replay}` : null,
      topic,
      bind: false,
    },
    view,
    {
      clock: processClock,
      timers: processTimers,
      random: new SeededRandom(1),
      turns: new Turns(),
      budget,
      sockets: zmqSockets,
      settings: { ...SETTINGS, ...settings },
    },
  );
  t.after(() => stream.stop());
  return { view, stream, budget };
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    if (holds()) return;
    await sleep(10);
  }
  assert.fail(`never: ${what}`);
}

/** An engine's cache with its events: blocks by number, each stored once more or taken back. */
class Cache {
  readonly counts = new Map<string, number>();

  store(...blocks: number[]): unknown {
    for (const block of blocks) this.#add(block, 1);
    return stored(
      blocks.map(BigInt),
      null,
      blocks.flatMap((block) => [block, block]),
      2,
    );
  }

  remove(...blocks: number[]): unknown {
    for (const block of blocks) this.#add(block, -1);
    return removed(blocks.map(BigInt));
  }

  holds(block: number): boolean {
    return this.counts.has(`gpu ${block}`);
  }

  clear(): unknown {
    this.counts.clear();
    return CLEARED;
  }

  #add(block: number, by: number): void {
    const key = `gpu ${block}`;
    const count = (this.counts.get(key) ?? 0) + by;
    if (count <= 0) this.counts.delete(key);
    else this.counts.set(key, count);
  }
}

function sameBlocks(view: HeldBlocks, cache: Cache): boolean {
  if (!view.isLive || view.counts.size !== cache.counts.size) return false;
  return [...cache.counts].every(([block, count]) => view.counts.get(block) === count);
}

describe("an event stream over real sockets", () => {
  for (const replayFrames of [3, 4] as const) {
    it(`replays what an engine published before, in answers of ${replayFrames} frames, then follows it`, async (t) => {
      const publisher = await start(t, { replayFrames });
      const cache = new Cache();
      for (let block = 0; block < 300; block++) await publisher.publish([cache.store(block)]);
      await publisher.publish([cache.remove(7), cache.store(8)]);
      const { view } = follow(t, publisher);
      await until("the view equals the cache", () => sameBlocks(view, cache));
      assert.deepEqual(view.history, { sinceSeq: 0, complete: true });
      assert.deepEqual(view.story, ["asked", "progress", "live"]);
      await publisher.publish([cache.store(1000, 1001)]);
      await until("the live batch arrives", () => sameBlocks(view, cache));
      assert.deepEqual(publisher.asked, [0]);
    });
  }

  it("closes a gap from the replay", async (t) => {
    const publisher = await start(t);
    const cache = new Cache();
    const { view } = follow(t, publisher);
    await publisher.publish([cache.store(1)]);
    await until("the first batch arrives", () => sameBlocks(view, cache));
    publisher.keep(batchOf(cache.store(2), cache.remove(1)));
    publisher.keep(batchOf(cache.store(3)));
    await publisher.publish([cache.store(4)]);
    await until("the gap is closed", () => sameBlocks(view, cache));
    assert.equal(view.count("lost gap"), 0);
    assert.deepEqual(view.seqs, [0, 1, 2, 3]);
  });

  it("says that the view is lost where the replay cannot close the gap, and builds a new one", async (t) => {
    const publisher = await start(t, { windowBatches: 3 });
    const cache = new Cache();
    const { view } = follow(t, publisher);
    await publisher.publish([cache.store(1)]);
    await until("the first batch arrives", () => sameBlocks(view, cache));
    for (let block = 2; block < 8; block++) publisher.keep(batchOf(cache.store(block)));
    await publisher.publish([cache.store(8)]);
    await until("it is live again", () => view.isLive && view.seqs.at(-1) === 7);
    assert.equal(view.count("lost gap"), 1);
    assert.deepEqual(view.history, { sinceSeq: 5, complete: false });
    assert.deepEqual([...view.counts.keys()], ["gpu 6", "gpu 7", "gpu 8"]);
  });

  it("asks again for batches that an answer lacks", async (t) => {
    const publisher = await start(t);
    const cache = new Cache();
    for (let block = 0; block < 50; block++) await publisher.publish([cache.store(block)]);
    publisher.omits = (seq) => seq > 10 && seq % 3 === 0 && publisher.asked.length === 1;
    const { view } = follow(t, publisher);
    await until("the view equals the cache", () => sameBlocks(view, cache));
    assert.deepEqual(publisher.asked, [0, 11]);
    assert.equal(view.history?.complete, true);
  });

  it("passes over what the engine never published", async (t) => {
    const publisher = await start(t);
    const cache = new Cache();
    await publisher.publish([cache.store(1)]);
    publisher.skip();
    await publisher.publish([cache.clear(), cache.store(2)]);
    const { view } = follow(t, publisher);
    await until("the view equals the cache", () => sameBlocks(view, cache));
    assert.equal(view.history?.sinceSeq, 2);
    publisher.skip();
    await publisher.publish([cache.clear(), cache.store(3)]);
    await until("the view equals the cache again", () => sameBlocks(view, cache));
    assert.equal(view.count("lost gap"), 2);
  });

  it("goes on without history where the replay is silent, and asks for it later", async (t) => {
    const publisher = await start(t);
    const cache = new Cache();
    publisher.answers = false;
    await publisher.publish([cache.store(1)]);
    const { view } = follow(t, publisher, { settings: { answerLimitMs: 40 } });
    await until("it is live", () => view.isLive);
    assert.deepEqual(view.history, { sinceSeq: null, complete: false });
    await publisher.publish([cache.store(2)]);
    await until("live batches are told", () => view.counts.has("gpu 2"));
    publisher.answers = true;
    await until("the whole history is told", () => sameBlocks(view, cache));
    assert.equal(view.history?.complete, true);
    assert.equal(view.count("lost rebuild"), 1);
  });

  it("follows an engine without replay, and is unsure after each gap", async (t) => {
    const publisher = await start(t);
    const cache = new Cache();
    const { view } = follow(t, publisher, { hasReplay: false });
    await until("it is live", () => view.isLive);
    await publisher.publish([cache.store(1)]);
    await until("the batch is told", () => view.counts.has("gpu 1"));
    publisher.keep(batchOf(cache.store(2)));
    await publisher.publish([cache.store(3)]);
    await until("the gap is told", () => view.count("lost no_replay") === 1);
    assert.deepEqual([...view.counts.keys()], ["gpu 3"]);
  });

  it("keeps the view over an interruption, and learns what it missed", async (t) => {
    const publisher = await start(t);
    const cache = new Cache();
    const { view } = follow(t, publisher);
    await publisher.publish([cache.store(1)]);
    await until("the batch is told", () => sameBlocks(view, cache));
    await publisher.interrupt();
    publisher.keep(batchOf(cache.store(2), cache.remove(1)));
    await until("the view equals the cache", () => sameBlocks(view, cache));
    assert.equal(view.count("restarted"), 0);
    assert.ok(view.count("failed") >= 1);
    assert.deepEqual(view.seqs, [0, 1]);
  });

  for (const published of [0, 1, 2, 9]) {
    it(`forgets everything when another process publishes, with ${published} batches of its own`, async (t) => {
      const first = await start(t);
      const old = new Cache();
      const { view } = follow(t, first);
      await first.publish([old.store(1)]);
      await first.publish([old.store(2)]);
      await until("the view equals the cache", () => sameBlocks(view, old));
      first.stop();
      const second = await start(t, { ports: first.ports });
      const cache = new Cache();
      for (let block = 0; block < published; block++) second.keep(batchOf(cache.store(100 + block)));
      await until("the restart is told", () => view.count("restarted") + view.count("lost gap") === 1);
      await until("the view equals the new cache", () => sameBlocks(view, cache));
      await second.publish([cache.store(200)]);
      await until("it follows the new process", () => sameBlocks(view, cache));
    });
  }

  it("hears only the topics asked for", async (t) => {
    const publisher = await start(t, { topic: "kv@10.0.0.1@qwen" });
    const cache = new Cache();
    const { view } = follow(t, publisher, { topic: "kv@", hasReplay: false });
    const { view: deaf } = follow(t, publisher, { topic: "load", hasReplay: false });
    await until("both are live", () => view.isLive && deaf.isLive);
    await publisher.publish([cache.store(1)]);
    await until("the batch is told", () => sameBlocks(view, cache));
    assert.equal(deaf.counts.size, 0);
  });

  it("keeps its bound and ends at the truth when an engine floods it", async (t) => {
    const publisher = await start(t);
    const cache = new Cache();
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    publisher.until = promise;
    const queuedBytes = 20_000;
    const settings = { maxQueuedMessages: 300, answerLimitMs: 60_000 };
    const { view, stream, budget } = follow(t, publisher, { settings, queuedBytes });
    await until("it awaits the replay", () => publisher.asked.length === 1);
    for (let block = 0; block < 1000; block++) {
      await publisher.publish(block % 3 === 2 ? [cache.remove(block - 1), cache.store(block)] : [cache.store(block)]);
      assert.ok(budget.leftBytes >= 0);
    }
    await until("there was no room", () => stream.status().droppedMessages > 0);
    answer();
    await until("the view equals the cache", () => sameBlocks(view, cache));
    assert.equal(budget.leftBytes, queuedBytes, "everything that was queued is given back");
  });

  it("does not let a message that is no batch disturb it", async (t) => {
    const publisher = await start(t);
    const cache = new Cache();
    const { view, stream } = follow(t, publisher);
    await until("it is live", () => view.isLive);
    await publisher.send({ seq: 0, payload: Buffer.from("no msgpack") });
    await publisher.sendRaw(["kv", "short", "x"]);
    await publisher.sendRaw(["kv"]);
    publisher.skip();
    await publisher.publish([cache.store(1)]);
    await until("the batch is told", () => sameBlocks(view, cache));
    assert.equal(view.unreadableEvents, 1);
    assert.equal(stream.status().strayMessages, 2);
  });

  it("reports where nobody publishes, and connects as soon as somebody does", async (t) => {
    const gone = await ScriptedPublisher.start();
    gone.stop();
    const { view } = follow(t, gone);
    await until("the failure is told", () => view.count("failed") === 1);
    const publisher = await start(t, { ports: gone.ports });
    const cache = new Cache();
    await publisher.publish([cache.store(1)]);
    await until("the view equals the cache", () => sameBlocks(view, cache));
  });

  for (const seed of [1, 2, 3, 4, 5, 6]) {
    it(`ends at the truth, or unsure, whatever happens on the way (seed ${seed})`, async (t) => {
      const random = new SeededRandom(seed);
      let publisher = await start(t, { windowBatches: 40, replayFrames: seed % 2 === 0 ? 3 : 4 });
      let cache = new Cache();
      const { view } = follow(t, publisher, { settings: { answerLimitMs: 60, checkAfterMs: 100 } });
      for (let step = 0; step < 400; step++) {
        const block = random.below(60);
        const dice = random.next();
        if (dice < 0.6) await publisher.publish([cache.store(block)]);
        else if (dice < 0.8 && cache.holds(block)) await publisher.publish([cache.remove(block)]);
        else if (dice < 0.88) publisher.keep(batchOf(cache.store(block)));
        else if (dice < 0.9) await publisher.publish([cache.clear()]);
        else if (dice < 0.92)
          publisher.omits = (seq) => seq % 7 === random.below(7) && publisher.asked.length % 2 === 1;
        else if (dice < 0.94) publisher.answers = !publisher.answers;
        else if (dice < 0.945) await publisher.interrupt();
        else if (dice < 0.95) {
          publisher.stop();
          publisher = await start(t, { ports: publisher.ports, windowBatches: 40 });
          cache = new Cache();
        }
        if (random.below(20) === 0) await sleep(5);
      }
      publisher.answers = true;
      publisher.omits = () => false;
      await publisher.publish([cache.clear()]);
      await publisher.publish([cache.store(1), cache.store(2)]);
      await until("the view equals the cache", () => sameBlocks(view, cache));
    });
  }
});

function batchOf(...events: unknown[]): Buffer {
  return batchOfEvents(events);
}
