import assert from "node:assert/strict";
import { createServer } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Unpackr } from "msgpackr";
import { Publisher } from "zeromq";
import { processClock } from "#src/determinism/clock.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import { processTimers } from "#src/determinism/timers.ts";
import { parseEndpoint } from "#src/discovery/parseEndpoint.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { KvEventListener } from "#src/engines/events/kvEventListener.ts";
import { KvEventMonitor } from "#src/engines/events/kvEventMonitor.ts";
import { HeldBlocks } from "../unit/engines/events/heldBlocks.ts";
import { recordedMessages } from "../unit/engines/events/recordedFrames.ts";
import { batch, stored } from "../unit/engines/events/wireEvents.ts";
import { serve } from "./recordedServer.ts";
import { ScriptedPublisher } from "./scriptedPublisher.ts";

/** A monitor over these endpoints, and what each rank holds. */
function follow(t: TestContext, ...endpoints: EngineEndpoint[]) {
  const views = new Map<string, HeldBlocks>();
  const view = (name: string, rank = 0): HeldBlocks => {
    const key = `${name} ${rank}`;
    const known = views.get(key) ?? new HeldBlocks();
    views.set(key, known);
    return known;
  };
  const listener: KvEventListener = {
    batch: ({ name }, rank, batch) => view(name, rank).batch(batch),
    lost: ({ name }, rank, why) => view(name, rank).lost(why),
    restarted: ({ name }, rank) => view(name, rank).restarted(),
    progress: ({ name }, rank, progress) => view(name, rank).progress(progress),
    live: ({ name }, rank, history) => view(name, rank).live(history),
    failed: ({ name }, rank) => view(name, rank).failed(),
  };
  const monitor = new KvEventMonitor({
    listener,
    clock: processClock,
    timers: processTimers,
    random: new SeededRandom(1),
    settings: { connectFirstDelayMs: 10, connectMaxDelayMs: 40, answerLimitMs: 500 },
  });
  t.after(() => monitor.stop());
  monitor.setEndpoints(endpoints);
  return { monitor, view };
}

async function start(
  t: TestContext,
  options: Parameters<typeof ScriptedPublisher.start>[0] = {},
): Promise<ScriptedPublisher> {
  const publisher = await ScriptedPublisher.start(options);
  t.after(() => publisher.stop());
  return publisher;
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    if (holds()) return;
    await sleep(10);
  }
  assert.fail(`never: ${what}`);
}

const one = (block: number) => batch([stored([BigInt(block)], null, [1, 2], 2)]);

describe("the KV event monitor over real sockets", () => {
  it("follows two ranks of an engine that tells its ports over HTTP", async (t) => {
    const [first, beside] = await startTwoRanks(t);
    first.keep(one(1));
    beside.keep(one(2));
    const info = {
      tp_size: 1,
      dp_size: 2,
      kv_events: {
        publisher: "zmq",
        endpoint_host: "*",
        endpoint_port_base: first.ports.events,
        topic: "",
        dp_size: 2,
      },
      kv_events_config: JSON.stringify({ publisher: "zmq", replay_endpoint: `tcp://*:${first.ports.replay}` }),
    };
    const engine = await serve(t, (request, response) => {
      response.writeHead(request.url?.startsWith("/server_info") ? 200 : 404);
      response.end(JSON.stringify(info));
    });
    const { view } = follow(t, parseEndpoint({ url: engine.url, name: "a" }));
    await until("both ranks are live", () => view("a", 0).isLive && view("a", 1).isLive);
    assert.deepEqual([...view("a", 0).counts.keys()], ["gpu 1"]);
    assert.deepEqual([...view("a", 1).counts.keys()], ["gpu 2"]);
  });

  it("gives an engine that connects to it an address that was configured", async (t) => {
    const port = await freePort();
    const replay = await start(t);
    replay.keep(one(1));
    const endpoint = parseEndpoint({
      url: "http://127.0.0.1:9",
      name: "a",
      kvEvents: {
        endpoint: `tcp://127.0.0.1:${port}`,
        replayEndpoint: `tcp://*:${replay.ports.replay}`,
        bind: true,
      },
    });
    const { view } = follow(t, endpoint);
    const publisher = new Publisher({ linger: 0 });
    t.after(() => publisher.close());
    publisher.connect(`tcp://127.0.0.1:${port}`);
    await until("it is live", () => view("a").isLive);
    assert.deepEqual([...view("a").counts.keys()], ["gpu 1"]);
    const seq = Buffer.from("0000000000000001", "hex");
    await until("what it publishes is told", () => {
      void publisher.send(["kv", seq, one(2)]);
      return view("a").counts.has("gpu 2");
    });
    assert.deepEqual(view("a").seqs, [0, 1]);
  });

  it("tells what a real vLLM published, as if it had been there from the start", async (t) => {
    const recorded = recordedMessages();
    const publisher = await start(t);
    const firstSeq = Number(recorded[0]?.frames[1]?.readBigUInt64BE());
    while (publisher.nextSeq < firstSeq) publisher.keep(batch([]));
    const half = Math.floor(recorded.length / 2);
    for (const { frames } of recorded.slice(0, half)) publisher.keep(frames[2] ?? Buffer.of());
    const { view } = follow(
      t,
      parseEndpoint({
        url: "http://127.0.0.1:9",
        name: "a",
        kvEvents: {
          endpoint: `tcp://*:${publisher.ports.events}`,
          replayEndpoint: `tcp://*:${publisher.ports.replay}`,
        },
      }),
    );
    await until("it is live", () => view("a").isLive);
    for (const { frames } of recorded.slice(half)) await publisher.send(publisher.keep(frames[2] ?? Buffer.of()));
    await until("all is told", () => view("a").seqs.length === publisher.nextSeq);
    assert.deepEqual(Object.fromEntries(view("a").counts), heldByRecord());
    assert.ok(view("a").counts.size > 50);
    assert.equal(view("a").unreadableEvents, 0);
  });
});

/** What the engine held in the end, read by another decoder. */
function heldByRecord(): Record<string, number> {
  const unpackr = new Unpackr({ useRecords: false, int64AsType: "bigint" });
  const held: Record<string, number> = {};
  for (const { frames } of recordedMessages()) {
    const [, events] = unpackr.unpack(frames[2] ?? Buffer.of()) as [
      number,
      { type: string; block_hashes?: bigint[] }[],
    ];
    for (const { type, block_hashes: hashes = [] } of events) {
      if (type === "AllBlocksCleared") for (const block of Object.keys(held)) delete held[block];
      for (const hash of hashes) {
        const block = `gpu ${hash}`;
        held[block] = (held[block] ?? 0) + (type === "BlockStored" ? 1 : -1);
        if (held[block] <= 0) delete held[block];
      }
    }
  }
  return held;
}

/** Publishers on ports that follow each other. */
async function startTwoRanks(t: TestContext): Promise<[ScriptedPublisher, ScriptedPublisher]> {
  for (let tries = 0; tries < 10; tries++) {
    const first = await start(t);
    try {
      return [first, await start(t, { ports: { events: first.ports.events + 1, replay: first.ports.replay + 1 } })];
    } catch {
      // Somebody has one of the ports; there are others.
    }
  }
  return assert.fail("no two ports beside each other are free");
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}
