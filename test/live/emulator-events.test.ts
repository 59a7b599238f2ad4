import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Dealer } from "zeromq";
import { EVENT_FORMS, type EventFormName } from "#src/emulator/events/eventForm.ts";
import type { EmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import type { KvStored } from "#src/engines/events/kvEvent.ts";
import { follow, type Follower } from "./emulatorEvents.ts";
import { emulate, until } from "./emulatorHelp.ts";

interface Asked {
  readonly prompt: string | readonly number[];
  readonly more?: Record<string, unknown>;
  readonly rank?: number;
}

async function complete(engine: EmulatedEngine, { prompt, more = {}, rank }: Asked): Promise<number> {
  const answer = await fetch(`${engine.url}/v1/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(rank === undefined ? {} : { "x-data-parallel-rank": String(rank) }),
    },
    body: JSON.stringify({ model: engine.model, prompt, max_tokens: 1, ...more }),
  });
  const body = (await answer.json()) as { usage: { prompt_tokens_details: { cached_tokens: number } } };
  assert.equal(answer.status, 200);
  return body.usage.prompt_tokens_details.cached_tokens;
}

const ids = (from: number, count: number): number[] => Array.from({ length: count }, (_, at) => from + at);
const isLive = (follower: Follower, rank = 0): boolean => follower.told.includes(`${rank} live`);

/** What a replay from a number on answers: the numbers, and the frames of its end. */
async function replay(address: string, from: number): Promise<{ seqs: number[]; end: string[] }> {
  const dealer = new Dealer({ linger: 0, receiveTimeout: 10_000 });
  dealer.connect(address);
  const start = Buffer.alloc(8);
  start.writeBigUInt64BE(BigInt(from));
  await dealer.send(["", start]);
  const seqs: number[] = [];
  for await (const frames of dealer) {
    const [seq, payload] = frames.slice(-2);
    if (payload?.length === 0) {
      dealer.close();
      return { seqs, end: frames.map((frame) => frame.toString("hex")) };
    }
    seqs.push(Number(seq?.readBigUInt64BE()));
  }
  throw new Error("the replay has no end");
}

describe("KV events of an emulated engine", () => {
  it("tell the tokens that /tokenize gives and usage later reports as cached", async (t) => {
    const engine = await emulate(t, { kvEvents: { topic: "kv@here" }, blockTokens: 16 });
    const follower = follow(t, engine);
    await until(() => isLive(follower));
    const prompt = "What the engine reads is cut into tokens of four bytes, and those into blocks. ".repeat(3);
    const tokenized = await fetch(`${engine.url}/tokenize`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: engine.model, prompt }),
    });
    const { tokens } = (await tokenized.json()) as { tokens: number[] };
    assert.equal(await complete(engine, { prompt }), 0);
    await until(() => follower.batches.length === 1);
    const [stored] = follower.events as readonly KvStored[];
    const full = Math.floor(tokens.length / 16);
    assert.deepEqual([...(stored?.tokenIds ?? [])], tokens.slice(0, full * 16));
    assert.deepEqual([stored?.engineHashes.length, stored?.parent, stored?.tier], [full, null, "gpu"]);
    // Found again, they are told no more.
    assert.equal(await complete(engine, { prompt }), Math.floor((tokens.length - 1) / 16) * 16);
    assert.equal(await complete(engine, { prompt: ids(1, 40), more: { cache_salt: "me" } }), 0);
    await until(() => follower.batches.length >= 2);
    const last = follower.events.at(-1) as KvStored;
    assert.deepEqual([last.salt, last.tokenIds[0]], ["me", 1]);
  });

  it("say the same in the form of every version", async (t) => {
    const forms = Object.keys(EVENT_FORMS) as EventFormName[];
    const views = await Promise.all(
      forms.map(async (form) => {
        const engine = await emulate(t, { kvEvents: { form }, blockTokens: 16, kvTokens: 16 * 20, adapters: ["a"] });
        const follower = follow(t, engine);
        await until(() => isLive(follower));
        for (const from of [0, 0, 1000, 2000, 3000]) await complete(engine, { prompt: ids(from, 100) });
        await complete(engine, { prompt: ids(0, 100), more: { model: "a" } });
        await until(() => follower.events.filter(({ kind }) => kind === "stored").length >= 5);
        const removed = follower.events.filter(({ kind }) => kind === "removed").length;
        const tokens = follower.events.flatMap((event) => (event.kind === "stored" ? [...event.tokenIds] : []));
        return { tokens, removed, held: follower.held.size };
      }),
    );
    assert.ok(views.every(({ removed }) => removed > 0));
    for (const view of views) assert.deepEqual(view, views[0]);
  });

  it("come from each rank on a port of its own", async (t) => {
    const engine = await emulate(t, { kvEvents: {}, dataParallelRanks: 2, blockTokens: 16 });
    const follower = follow(t, engine);
    await until(() => isLive(follower, 0) && isLive(follower, 1));
    await complete(engine, { prompt: ids(0, 32), rank: 1 });
    await complete(engine, { prompt: ids(0, 48), rank: 0 });
    await until(() => follower.batches.length === 2);
    assert.deepEqual(
      follower.batches.map(({ rank, seq, events }) => [rank, seq, (events[0] as KvStored).engineHashes.length]),
      [
        [1, 0, 2],
        [0, 0, 3],
      ],
    );
  });

  it("tell a reset with the next step, and a restart by numbers from 0", async (t) => {
    const engine = await emulate(t, { kvEvents: {}, blockTokens: 16 });
    const follower = follow(t, engine);
    await until(() => isLive(follower));
    const { events } = engine.kvEvents ?? {};
    await complete(engine, { prompt: ids(0, 32) });
    await fetch(`${engine.url}/reset_prefix_cache`, { method: "POST" });
    await complete(engine, { prompt: ids(100, 32) });
    await until(() => follower.batches.length >= 2);
    assert.deepEqual(
      follower.batches.map((batch) => batch.events.map(({ kind }) => kind)),
      [["stored"], ["cleared", "stored"]],
    );
    await engine.restart();
    assert.equal(engine.kvEvents?.events, events);
    await complete(engine, { prompt: ids(200, 48) });
    await until(() => follower.held.size === 3 && follower.told.includes("0 restarted"));
    assert.equal(follower.batches.at(-1)?.seq, 0);
  });

  it("tell what the host's memory holds, by hash alone as vLLM's offloading does", async (t) => {
    const engine = await emulate(t, { kvEvents: {}, blockTokens: 16, kvTokens: 96, hostKvTokens: 160 });
    const follower = follow(t, engine);
    await until(() => isLive(follower));
    for (const from of [0, 1000, 2000]) assert.equal(await complete(engine, { prompt: ids(from, 80) }), 0);
    // The last prompt pushed the first out of the host, and the second out of the GPU only.
    assert.equal(await complete(engine, { prompt: ids(1000, 80) }), 64);
    assert.equal(await complete(engine, { prompt: ids(0, 80) }), 0);
    await until(() => follower.batches.length >= 5);
    const onHost = follower.events.filter(
      (event) => event.kind !== "cleared" && "tier" in event && event.tier === "host",
    );
    const stored = onHost.filter((event) => event.kind === "stored");
    assert.deepEqual([stored.length, onHost.length - stored.length], [20, 10]);
    assert.ok(stored.every(({ blockTokens, engineHashes }) => blockTokens === 0 && engineHashes.length === 1));
  });

  it("are repeated as far back as the buffer goes", async (t) => {
    for (const form of ["vllm", "vllm-arrays"] as const) {
      const engine = await emulate(t, { kvEvents: { bufferSteps: 3, topic: "kv", form }, blockTokens: 16 });
      const address = engine.kvEvents?.replay ?? "";
      const end = form === "vllm" ? ["", "", "ff".repeat(8), ""] : ["", "ff".repeat(8), ""];
      assert.deepEqual(await replay(address, 0), { seqs: [], end });
      for (let at = 0; at < 5; at++) await complete(engine, { prompt: ids(at * 100, 16) });
      assert.deepEqual(await replay(address, 0), { seqs: [2, 3, 4], end });
      assert.deepEqual(await replay(address, 4), { seqs: [4], end });
      assert.deepEqual(await replay(address, 5), { seqs: [], end });
    }
  });
});

it("an engine whose event port is taken says which", async (t) => {
  const { kvEvents } = await emulate(t, { kvEvents: {} });
  const port = Number(kvEvents?.events.split(":").at(-1));
  await assert.rejects(emulate(t, { kvEvents: { port } }), { code: "EADDRINUSE", address: "127.0.0.1", port });
});

describe("faults of KV events", () => {
  it("dropped batches leave a gap that a replay closes, lost ones a gap that stays", async (t) => {
    const engine = await emulate(t, { kvEvents: {}, blockTokens: 16 });
    const follower = follow(t, engine);
    await until(() => isLive(follower));
    await complete(engine, { prompt: ids(0, 32) });
    await engine.faults.set({ dropKvBatches: 1 });
    await complete(engine, { prompt: ids(100, 32) });
    await complete(engine, { prompt: ids(200, 32) });
    await until(() => follower.held.size === 6);
    assert.ok(!follower.told.some((one) => one.includes("lost")));
    await engine.faults.set({ loseKvBatches: 1 });
    await complete(engine, { prompt: ids(300, 32) });
    await complete(engine, { prompt: ids(400, 48) });
    await until(() => follower.told.includes("0 lost gap"));
    await until(() => follower.held.size === 3);
  });

  it("duplicates and delays change nothing but the time", async (t) => {
    const engine = await emulate(t, { kvEvents: {}, blockTokens: 16 });
    const follower = follow(t, engine);
    await until(() => isLive(follower));
    await engine.faults.set({ duplicateKvBatches: 2, delayKvBatchesMs: 100 });
    for (const from of [0, 100, 200]) await complete(engine, { prompt: ids(from, 32) });
    await until(() => follower.held.size === 6);
    assert.ok(Math.min(...follower.lateMs) >= 99);
    assert.deepEqual(
      follower.batches.map(({ seq }) => seq),
      [0, 1, 2],
    );
    assert.deepEqual(engine.faults.current.duplicateKvBatches, 0);
  });

  it("a replay that is silent or not there leaves a follower with what it hears", async (t) => {
    const silent = await emulate(t, { kvEvents: {}, blockTokens: 16 });
    await silent.faults.set({ kvReplaySilent: true });
    const without = await emulate(t, { kvEvents: { replayPort: null }, blockTokens: 16 });
    assert.equal(without.kvEvents?.replay, null);
    for (const engine of [silent, without]) {
      const follower = follow(t, engine, { answerLimitMs: 50 });
      await until(() => isLive(follower));
      await complete(engine, { prompt: ids(0, 32) });
      await until(() => follower.held.size === 2);
      assert.equal(follower.told.includes("0 failed"), engine === silent);
    }
  });
});
