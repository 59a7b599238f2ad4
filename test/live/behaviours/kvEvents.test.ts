// Behaviours 20 to 23 and 25: what engines tell of their caches.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import type { EmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import type { EmulatedEngineOptions } from "#src/emulator/engineOptions.ts";
import type { Decision } from "#src/routing/decision.ts";
import { writeSmallTokenizer } from "../../unit/emulator/smallTokenizer.ts";
import { batch, removed, stored } from "../../unit/engines/events/wireEvents.ts";
import { MODEL, setUp, until, type Setup } from "../gatewaySetup.ts";
import { ScriptedPublisher } from "../scriptedPublisher.ts";
import { metric } from "./books.ts";
import { answer, Worker } from "./worker.ts";

const ids = (from: number, count: number): number[] => Array.from({ length: count }, (_, at) => from + at);

interface Asked {
  readonly predicted: number;
  readonly reported: number;
  readonly decision: Decision;
  readonly replica: string;
}

async function ask(setup: Setup, path: string, body: object): Promise<Asked> {
  const response = await fetch(`${setup.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, ...body }),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const { usage = {} } = JSON.parse(text) as { usage?: Record<string, { cached_tokens?: number } | undefined> };
  const details = usage["prompt_tokens_details"] ?? usage["input_tokens_details"];
  const [decision] = setup.router.decisions.recent(1);
  const predicted = decision!.cachedTokens(decision!.chosen);
  const replica = response.headers.get("x-kvasir-replica") ?? "";
  return { predicted, reported: details?.cached_tokens ?? 0, decision: decision!, replica };
}

const complete = (setup: Setup, prompt: readonly number[], more: object = {}): Promise<Asked> =>
  ask(setup, "/v1/completions", { prompt, max_tokens: 1, ...more });

const stateOf = ({ router }: Setup, id: string): string => {
  const { fleet } = router;
  return fleet.index.view(fleet.byId(id)!.index).state.state;
};

/** Told by the metrics as well as by the state itself. */
async function isLive(setup: Setup, id: string): Promise<boolean> {
  const shown = await metric(setup, `kvasir_replica_view_state{replica="${id}",state="live"}`);
  return stateOf(setup, id) === "live" && shown === 1;
}

const idOf = ({ url }: EmulatedEngine): string => new URL(url).host;

async function conditionsOf({ adminUrl }: Setup): Promise<string> {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  return [...metrics.matchAll(/^kvasir_condition\{(.*)\} 1$/gm)].map(([, labels]) => labels).join("\n");
}

async function temporaryTokenizer(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "kvasir-behaviours-"));
  t.after(() => rm(folder, { recursive: true }));
  return writeSmallTokenizer(join(folder, MODEL));
}

/** An engine whose answers and events are written by hand. */
async function scripted(t: TestContext): Promise<{ publisher: ScriptedPublisher; setup: Setup; id: string }> {
  const publisher = await ScriptedPublisher.start({ topic: "" });
  const worker = await Worker.start(({ socket }) => void socket.write(answer({ prompt: 65, output: 1, cached: 0 })));
  const { events, replay } = publisher.ports;
  const kvEvents = { endpoint: `tcp://127.0.0.1:${events}`, replayEndpoint: `tcp://127.0.0.1:${replay}` };
  const setup = await setUp([], { engines: [{ url: worker.url, kvEvents }] }, 1);
  t.after(async () => {
    await setup[Symbol.asyncDispose]();
    await worker[Symbol.asyncDispose]();
    publisher.stop();
  });
  return { publisher, setup, id: worker.id };
}

const chunkOf = (number: number): unknown =>
  stored([BigInt(number + 1)], number === 0 ? null : BigInt(number), ids(16 * number, 16), 16);

describe("20. batches of events", () => {
  it("that are dropped, doubled or late leave the index equal to the truth", async () => {
    await using setup = await setUp([{ kvEvents: {}, kvTokens: 4_000 }]);
    const [engine] = setup.engines as [EmulatedEngine];
    await until("the view is live", () => isLive(setup, idOf(engine)));
    const replays = async (): Promise<number> =>
      (await metric(setup, `kvasir_kv_events_replays_total{replica="${idOf(engine)}"}`)) ?? 0;
    for (let round = 0; round < 12; round++) {
      const replaysBefore = await replays();
      await engine.faults.set({
        dropKvBatches: round % 3,
        duplicateKvBatches: (round + 1) % 2,
        delayKvBatchesMs: round,
      });
      for (let at = 0; at < 3; at++) await complete(setup, ids(1000 * (3 * round + at), 400));
      await engine.faults.set({ dropKvBatches: 0, delayKvBatchesMs: 0 });
      // One more batch shows what is missing, and its end that everything has come.
      await complete(setup, ids(100_000 + 100 * round, 33));
      const { index } = setup.router.fleet;
      // Until a gap is seen, what own traffic left looks like what was told.
      if (round % 3 > 0) await until("the gap is seen", async () => (await replays()) > replaysBefore);
      await until("all is told", async () => {
        const { predicted } = await complete(setup, ids(100_000 + 100 * round, 34));
        return predicted === 32 && index.isExact(0);
      });
      for (let back = 0; back < 3; back++) {
        const { predicted, reported } = await complete(setup, ids(1000 * (3 * round + 2 - back), 401));
        assert.equal(predicted, reported, `round ${round}, ${back} back`);
      }
    }
  });

  it("that are lost for good are not believed in: the view is unsure, and says so", async () => {
    await using setup = await setUp([{ kvEvents: {} }]);
    const [engine] = setup.engines as [EmulatedEngine];
    await until("the view is live", () => isLive(setup, idOf(engine)));
    await engine.faults.set({ loseKvBatches: 1 });
    await complete(setup, ids(0, 100));
    await complete(setup, ids(1000, 100));
    await until("it is seen", () => stateOf(setup, idOf(engine)) === "unsure");
    await until("it is said", async () => (await conditionsOf(setup)).includes("events_gap"));
    assert.equal(await isLive(setup, idOf(engine)), false);
  });

  it("that come in another order end at the truth", async (t) => {
    const { publisher, setup, id } = await scripted(t);
    await until("the view is live", () => isLive(setup, id));
    const held = (): number => setup.router.fleet.index.view(0).holders;
    for (const block of [0, 1, 2]) await publisher.publish([chunkOf(block)]);
    await until("three blocks are known", () => held() === 3);
    // The store of the fourth block arrives after its removal.
    const store = publisher.keep(batch([chunkOf(3)], 1));
    const removal = publisher.keep(batch([removed([4n])], 2));
    await publisher.send(removal);
    await publisher.send(store);
    await publisher.publish([removed([3n])]);
    await until("two are left", () => held() === 2 && stateOf(setup, id) === "live");
    assert.equal((await complete(setup, ids(0, 65))).predicted, 32);
  });
});

describe("21. a router that starts after its engines", () => {
  it("is not ready before it has been told what is there, shows how far it is, and waits no longer than it may", async () => {
    const publisher = await ScriptedPublisher.start({ topic: "" });
    await using worker = await Worker.start(({ socket }) => void socket.write(answer()));
    const { events, replay } = publisher.ports;
    const kvEvents = { endpoint: `tcp://127.0.0.1:${events}`, replayEndpoint: `tcp://127.0.0.1:${replay}` };
    for (const block of ids(0, 30)) publisher.keep(batch([chunkOf(block)], block));
    const { promise, resolve } = Promise.withResolvers<void>();
    publisher.until = promise;
    const engines = [{ url: worker.url, kvEvents }];
    try {
      await using setup = await setUp([], { engines }, 1);
      const early = await fetch(`${setup.url}/readyz`);
      assert.equal(early.status, 503);
      assert.match(await early.text(), /learning what 1 of 1 replicas have cached \(0 batches/);
      resolve();
      await until("it is ready", async () => (await fetch(`${setup.url}/readyz`)).ok);
      assert.equal(setup.router.fleet.index.view(0).holders, 30);
      assert.ok(setup.logged.some(({ msg }) => msg === "what the engines hold is known"));
      publisher.answers = false;
      await using other = await setUp([], { engines, limits: { warmStartMs: 500 } }, 1);
      await until("its time is up", async () => (await fetch(`${other.url}/readyz`)).ok);
      assert.ok(other.logged.some(({ msg }) => String(msg).startsWith("not all that the engines hold is known")));
    } finally {
      publisher.stop();
    }
  });
});

describe("22. the same prompt", () => {
  it("is the same blocks as a chat, a completion and a response; what cannot be hashed is counted", async (t) => {
    const tokenizer = await temporaryTokenizer(t);
    await using setup = await setUp([{ tokenizer, kvEvents: {} }], { models: { [MODEL]: { tokenizer } } });
    const [engine] = setup.engines as [EmulatedEngine];
    await until("the view is live", () => isLive(setup, idOf(engine)));
    const content = "the old map and the new one ".repeat(40);
    const ways: readonly [path: string, body: object][] = [
      ["/v1/chat/completions", { messages: [{ role: "user", content }], max_tokens: 1 }],
      ["/v1/responses", { input: content, max_output_tokens: 1 }],
      ["/v1/completions", { prompt: `<|im_start|>user\n${content}<|im_end|>\n<|im_start|>assistant\n`, max_tokens: 1 }],
    ];
    const [[path, body] = ["", {}]] = ways;
    assert.equal((await ask(setup, path, body)).reported, 0);
    const { index } = setup.router.fleet;
    await until("its events have come", () => index.view(0).holders > 10);
    const { holders } = index.view(0);
    for (const [each, more] of ways) {
      const { predicted, reported } = await ask(setup, each, more);
      assert.deepEqual([predicted, index.view(0).holders], [16 * holders, holders], each);
      assert.equal(reported, predicted, each);
    }
    const series = `kvasir_text_identities_total{reason="client_template"}`;
    const before = (await metric(setup, series)) ?? 0;
    await ask(setup, "/v1/chat/completions", { messages: [{ role: "user", content: "x" }], chat_template: "{{ 1 }}" });
    assert.equal(await metric(setup, series), before + 1);
  });
});

describe("23. engines that are set up differently", () => {
  it("are followed whatever their hashes are, and named where their blocks do not fit", async () => {
    const odd: readonly EmulatedEngineOptions[] = [
      { blockTokens: 16 },
      { blockTokens: 32, hashSeed: 7, hashAlgorithm: "sha256_cbor" },
      { blockTokens: 24 },
    ];
    await using setup = await setUp(
      odd.map((options) => ({ ...options, kvEvents: {} })),
      { policy: "round-robin" },
    );
    const [small, large, misfit] = setup.engines.map(idOf);
    for (let at = 0; at < 12; at++) await complete(setup, ids(1000 * at, 400));
    await until("it is said", async () => /block_size_mismatch.*/.test(await conditionsOf(setup)));
    const named = (await conditionsOf(setup)).split("\n").filter((line) => line.includes("block_size_mismatch"));
    assert.equal(named.length, 1);
    assert.ok(named[0]!.includes(misfit!), named[0]);
    for (const id of [small!, large!]) await until("its view is live", () => isLive(setup, id));
    let hits = 0;
    for (let at = 0; at < 12; at++) {
      const { predicted, reported, replica } = await complete(setup, ids(1000 * at, 401));
      if (replica !== misfit) assert.equal(predicted, reported);
      hits += Number(reported > 0);
    }
    assert.ok(hits > 0);
  });
});

describe("25. what was evicted from GPU memory and lies in the host's", () => {
  it("is a hit, at a price below computing it", async () => {
    await using setup = await setUp([{ kvEvents: {}, kvTokens: 2_048, hostKvTokens: 100_000, timeScale: 1 }]);
    const [engine] = setup.engines as [EmulatedEngine];
    await until("the view is live", () => isLive(setup, idOf(engine)));
    await complete(setup, ids(0, 1000));
    for (let at = 1; at < 5; at++) await complete(setup, ids(10_000 * at, 1000));
    const cold = await complete(setup, ids(60_000, 1001));
    await until("all is told", async () => (await complete(setup, ids(60_000, 1001))).predicted === 992);
    assert.ok(setup.router.fleet.index.isExact(0));
    const series = `kvasir_replica_cached_tokens_predicted_total{replica="${idOf(engine)}"}`;
    const before = (await metric(setup, series)) ?? 0;
    const warm = await complete(setup, ids(0, 1001));
    assert.deepEqual([warm.predicted, warm.reported], [0, 992], "nothing of it is in GPU memory");
    assert.equal(await metric(setup, series), before + 992, "and it is a predicted hit");
    const price = ({ decision }: Asked): number =>
      decision.termMs(decision.chosen, "prefill") + decision.termMs(decision.chosen, "restore");
    assert.ok(warm.decision.termMs(warm.decision.chosen, "restore") > 0);
    assert.ok(price(warm) < price(cold), `${price(warm)} and ${price(cold)}`);
  });
});
