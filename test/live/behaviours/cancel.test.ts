// Behaviours 1 to 4: clients that leave, and what the router counts.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import { startEmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { chunk, LAST_CHUNK, post, STREAM_HEAD, type Received } from "../dispatchRig.ts";
import { FAST, MODEL, setUp, until } from "../gatewaySetup.ts";
import { counters, leftOver, metric } from "./books.ts";
import { chatBytes, Client } from "./client.ts";
import { answer, DONE, headerOf, stream, token, Worker } from "./worker.ts";

const ABORT_WITHIN_MS = 1000;

describe("1. a client that leaves during the prompt", () => {
  it("ends the engine's request within a second, on every path, and the replica is not blamed", async () => {
    const leftMs = new Map<string, number>();
    const late: string[] = [];
    let aborted = 0;
    await using worker = await Worker.start(({ socket, body, head }) => {
      // Every other one has its headers early, as vLLM sends them.
      if (body.includes(`"stream":true`)) socket.write(STREAM_HEAD);
      const path = /^POST (\S+)/.exec(head)?.[1] ?? "";
      socket.once("close", () => {
        aborted++;
        if (performance.now() - (leftMs.get(path) ?? 0) > ABORT_WITHIN_MS) late.push(path);
      });
    });
    await using setup = await setUp([], { engines: [worker.url] }, 1);
    const prompts: Record<string, Record<string, unknown>> = {
      "/v1/chat/completions": { messages: [{ role: "user", content: "word ".repeat(9000) }], stream: true },
      "/v1/completions": { prompt: "word ".repeat(700) },
      "/v1/responses": { input: "word ".repeat(40), stream: true },
      "/v1/messages": { messages: [{ role: "user", content: "word" }], max_tokens: 5 },
      "/v1/embeddings": { input: ["word", "other"] },
      "/v1/rerank": { query: "x", documents: ["y", "z"] },
    };
    for (const [path, fields] of Object.entries(prompts)) {
      const body = JSON.stringify({ model: MODEL, ...fields });
      const clients = Array.from({ length: 5 }, () => new Client(setup.url, post(body, "", path)));
      const before = worker.requests.length;
      await until("the engine has all of them", () => worker.requests.length === before + 5);
      leftMs.set(path, performance.now());
      for (const client of clients) client.leave();
      await until("the engine was told", () => aborted === before + 5);
    }
    assert.deepEqual(late, []);
    const [replica] = setup.router.fleet.replicas();
    assert.deepEqual(
      [replica?.lifecycle.state, replica?.lifecycle.state === "ready" && replica.lifecycle.failures],
      ["ready", 0],
    );
    await until("nothing is left", async () => Object.keys(await leftOver(setup)).length === 0);
  });
});

describe("2. an abort", () => {
  it("reaches the request meant: ids are the router's own, and none begins with another", async () => {
    const closed = new Set<string>();
    await using worker = await Worker.start((request) => {
      request.socket.write(STREAM_HEAD);
      request.socket.once("close", () => closed.add(headerOf(request, "x-request-id") ?? ""));
    });
    await using setup = await setUp([], { engines: [worker.url] }, 1);
    const clients = ["req-1", "req-10", "req-1", ""].map(
      (id) => new Client(setup.url, chatBytes({ stream: true, request_id: id, rid: id }, `X-Request-Id: ${id}\r\n`)),
    );
    await until("the engine has all", () => worker.requests.length === 4);
    const ids = worker.requests.map((request) => headerOf(request, "x-request-id") ?? "");
    assert.equal(new Set(ids).size, 4);
    for (const id of ids)
      assert.ok(!id.startsWith("req-") && ids.every((other) => other === id || !other.startsWith(id)));
    for (const { body } of worker.requests) assert.ok(!/req-1|"rid"|request_id/.test(body.toString()));
    // Which connection carries whose request is the router's affair; exactly one of the four must go.
    clients[1]?.leave();
    await until("one is aborted", () => closed.size === 1);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(closed.size, 1);
    assert.equal(setup.router.scheduler.inFlight, 3);
    for (const client of clients) client.leave();
    await until("all are", () => closed.size === 4);
    assert.deepEqual([...closed].sort(), [...ids].sort());
  });
});

describe("3. cancelled requests", () => {
  it("leave every counter at 0, after 1,000 of them at any moment", async () => {
    const random = new SeededRandom(20_261);
    const engines = await Promise.all(
      [1, 2].map(() => startEmulatedEngine({ ...FAST, timeScale: 0.2, maxRunning: 2 })),
    );
    let nth = 0;
    // Drops every third request after a while, so that some clients leave before, amid and after a second leg.
    await using dropping = await Worker.start(({ socket, body }) => {
      const drops = nth++ % 3 === 0;
      const reply = drops ? null : body.includes(`"stream":true`) ? stream(3) : answer();
      setTimeout(() => (reply === null ? socket.destroy() : socket.write(reply)), random.next() * 20);
    });
    const urls = [...engines.map(({ url }) => url), dropping.url];
    await using setup = await setUp(
      [],
      { engines: urls.map((url) => ({ url, maxRunningRequests: 2 })), limits: { queueRequests: 40 } },
      3,
    );
    const left = { "before it was placed": 0, "before the first byte": 0, "amid tokens": 0 };
    async function comeAndGo(): Promise<void> {
      const tokens = random.below(2) * (1 + random.below(40));
      const streamed = tokens > 0 || random.next() < 0.5;
      const messages = [{ role: "user", content: `${random.next()} `.repeat(1 + random.below(30)) }];
      const client = new Client(setup.url, chatBytes({ stream: streamed, max_tokens: tokens + 5, messages }));
      if (tokens === 0) await new Promise((resolve) => setTimeout(resolve, random.next() * 60));
      else await client.sees((text) => text.split("data:").length > tokens || /"error"|\[DONE\]/.test(text));
      if (client.text.includes("data:")) left["amid tokens"]++;
      else if (setup.router.scheduler.depth.requests > 0) left["before it was placed"]++;
      else left["before the first byte"]++;
      client.leave();
    }
    try {
      await Promise.all(
        Array.from({ length: 40 }, async () => {
          for (let at = 0; at < 25; at++) await comeAndGo();
        }),
      );
      for (const [moment, times] of Object.entries(left)) assert.ok(times > 2, `${moment}: ${times} times`);
      await until("everything is counted down", async () => Object.keys(await leftOver(setup)).length === 0);
      await until("the engines are idle", () =>
        engines.every((engine) => engine.stats().running + engine.stats().waiting === 0),
      );
      assert.ok(((await metric(setup, `kvasir_retries_total{reason="engine_failed"}`)) ?? 0) > 5);
      assert.equal(await statusOf(setup.url), 200, "and the router serves on");
    } finally {
      await Promise.all(engines.map((engine) => engine.stop()));
    }
  });
});

async function statusOf(url: string): Promise<number> {
  const client = new Client(url, chatBytes({}, "Connection: close\r\n"));
  await client.closed;
  return client.status;
}

describe("4. a replica that flaps", () => {
  it("takes its counters with it: what its old requests do later changes nothing", async () => {
    const held: Received[] = [];
    await using worker = await Worker.start((request) => {
      held.push(request);
      request.socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunk(token())]));
    });
    await using setup = await setUp([], { engines: [worker.url] }, 1);
    const replica = setup.router.fleet.byId(worker.id)!;
    const lowest: Record<string, number> = {};
    const watch = setup.router.fleet.onChange(() => note());
    function note(): void {
      for (const [name, value] of Object.entries(replica.load)) {
        if (typeof value === "number") lowest[name] = Math.min(lowest[name] ?? 0, value);
      }
    }
    for (let life = 1; life <= 3; life++) {
      const old = held.length;
      const before = Array.from(
        { length: 5 + life },
        () => new Client(setup.url, chatBytes({ stream: true, max_tokens: 90 })),
      );
      await until("they stream", () => before.every(({ text }) => text.includes("word")));
      assert.equal(replica.load.requests, before.length);

      const { incarnation } = replica;
      worker.probed.startedAtSeconds += 100;
      await until("the router has seen it", () => replica.incarnation !== incarnation);
      assert.equal(replica.load.requests, 0);
      await until("it takes requests again", () => replica.lifecycle.state === "ready");
      const after = Array.from({ length: 3 }, () => new Client(setup.url, chatBytes({ stream: true, max_tokens: 90 })));
      await until("new ones stream", () => after.every(({ text }) => text.includes("word")));

      for (const { socket } of held.slice(old, old + before.length)) {
        socket.write(Buffer.concat([chunk(token()), chunk(DONE), Buffer.from(LAST_CHUNK)]));
      }
      await until("the old ones have ended", () => before.every(({ text }) => text.includes("[DONE]")));
      note();
      assert.equal(replica.load.requests, after.length);
      assert.equal((await counters(setup))["inFlight"], after.length);
      for (const client of after) client.leave();
      await until("nothing is left", async () => Object.keys(await leftOver(setup)).length === 0);
    }
    watch();
    assert.deepEqual(
      Object.values(lowest).filter((value) => value < 0),
      [],
      JSON.stringify(lowest),
    );
  });
});
