import assert from "node:assert/strict";
import { connect } from "node:net";
import { once } from "node:events";
import { describe, it } from "node:test";
import { chat, emulate, streamChat, until, type ChatFields } from "./emulatorHelp.ts";

const contentChunks = (text: string): number => text.split('"delta":{"content":').length - 1;

describe("a client that leaves", () => {
  it("frees what it held, and is logged with how far it was", async (t) => {
    const engine = await emulate(t, { maxRunning: 1, timeScale: 1 });
    const leave = { decode: new AbortController(), prefill: new AbortController(), queued: new AbortController() };
    const left: Promise<void>[] = [];
    const ask = (requestId: string, fields: ChatFields, signal: AbortSignal): void => {
      const answer = chat(engine, fields, { signal, headers: { "x-request-id": requestId } });
      left.push(
        assert.rejects(
          answer.then((response) => response.text()),
          { name: "AbortError" },
        ),
      );
    };
    ask("decoding", { maxTokens: 4000, stream: true }, leave.decode.signal);
    await until(() => engine.stats().generatedTokens > 0);
    ask("waiting", {}, leave.queued.signal);
    await until(() => engine.stats().waiting === 1);
    leave.queued.abort();
    leave.decode.abort();
    await until(() => engine.stats().running === 0);
    ask("long", { text: "x".repeat(4 * 30_000) }, leave.prefill.signal);
    await until(() => engine.stats().running === 1);
    leave.prefill.abort();
    await Promise.all(left);

    await until(() => engine.stats().requests.length === 3);
    const { requests, running, waiting: stillWaiting, kvUsage, aborted } = engine.stats();
    assert.deepEqual(
      new Map(requests.map(({ requestId, outcome, phase }) => [requestId, `${outcome} ${phase}`])),
      new Map([
        ["decoding", "aborted decode"],
        ["waiting", "aborted queued"],
        ["long", "aborted prefill"],
      ]),
    );
    assert.deepEqual([running, stillWaiting, kvUsage, aborted], [0, 0, 0, 3]);
    assert.deepEqual(engine.stats().abortedRequestIds.toSorted(), ["decoding", "long", "waiting"]);
  });

  it("after a thousand times has left nothing behind", async (t) => {
    const engine = await emulate(t);
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        Array.from({ length: 50 }, async () => {
          const leave = new AbortController();
          const answer = chat(engine, { maxTokens: 5000 }, { signal: leave.signal });
          setImmediate(() => leave.abort());
          await assert.rejects(answer);
        }),
      );
    }
    await until(() => engine.stats().running === 0 && engine.stats().waiting === 0);
    assert.equal(engine.stats().kvUsage, 0);
  });
});

describe("a fault", () => {
  it("refuse: nobody listens, until it is cleared, at the same address", async (t) => {
    const engine = await emulate(t);
    await chat(engine);
    await engine.faults.set({ refuse: true });
    await assert.rejects(
      chat(engine),
      (error: Error) => (error.cause as NodeJS.ErrnoException).code === "ECONNREFUSED",
    );
    await engine.faults.clear();
    assert.equal((await chat(engine)).status, 200);
  });

  it("hang: requests are accepted and never answered, and health is not affected unless all hangs", async (t) => {
    const engine = await emulate(t, { keepReceived: 10 });
    await engine.faults.set({ hang: "requests" });
    const leave = new AbortController();
    const headers = { "x-request-id": "left hanging" };
    const hanging = chat(engine, {}, { signal: leave.signal, headers });
    await until(() => engine.stats().received.length === 1);
    assert.equal((await fetch(`${engine.url}/health`)).status, 200);
    await engine.faults.set({ hang: "all" });
    const health = fetch(`${engine.url}/health`, { signal: leave.signal });
    await until(() => engine.stats().received.length === 3);
    assert.equal((await fetch(`${engine.url}/emulator/faults`)).status, 200);
    leave.abort();
    await Promise.all([assert.rejects(hanging), assert.rejects(health)]);
    assert.equal(engine.stats().submitted, 0);
    await until(() => engine.stats().abortedRequestIds.includes("left hanging"));
  });

  it("error: so many requests get this status, then all is well", async (t) => {
    const engine = await emulate(t);
    await engine.faults.set({ error: { status: 503, retryAfterSeconds: 7 }, requestsLeft: 2 });
    const statuses: unknown[] = [];
    for (let request = 0; request < 3; request++) {
      const answer = await chat(engine);
      statuses.push([answer.status, answer.headers.get("retry-after")]);
      await answer.arrayBuffer();
    }
    assert.deepEqual(statuses, [
      [503, "7"],
      [503, "7"],
      [200, null],
    ]);
    assert.equal((await fetch(`${engine.url}/v1/models`)).status, 200);
  });

  it("death: the connection is cut after so many tokens, without an end", async (t) => {
    const engine = await emulate(t);
    await engine.faults.set({ dieAfterTokens: 3 });
    const { text, broken } = await streamChat(engine, { maxTokens: 50 });
    assert.deepEqual([contentChunks(text), broken, text.includes("[DONE]")], [3, true, false]);
    await assert.rejects(chat(engine, { maxTokens: 50 }));
    await engine.faults.set({ dieAfterTokens: 0 });
    assert.deepEqual(await streamChat(engine, { maxTokens: 50 }), { text: "", broken: true });
    await engine.faults.clear();
    assert.equal((await chat(engine, { maxTokens: 50 })).status, 200);
    assert.deepEqual(
      engine.stats().requests.map(({ outcome }) => outcome),
      ["died", "died", "died", "finished"],
    );
    assert.equal(engine.stats().running, 0);
  });

  it("death after as many tokens as were asked for still leaves the end out", async (t) => {
    const engine = await emulate(t);
    await engine.faults.set({ dieAfterTokens: 4 });
    const { text, broken } = await streamChat(engine, { maxTokens: 4 });
    assert.deepEqual([contentChunks(text), broken, text.includes("[DONE]")], [4, true, false]);
  });

  it("stall: the stream falls silent and stays open", async (t) => {
    const engine = await emulate(t);
    await engine.faults.set({ stallAfterTokens: 2 });
    const leave = new AbortController();
    let seen = 0;
    const onText = (text: string): void => void (seen = contentChunks(text));
    const all = streamChat(engine, { maxTokens: 40 }, { signal: leave.signal, onText });
    // The model goes on, so that its end shows that nothing more was sent.
    await until(() => engine.stats().finished === 1 && seen === 2);
    leave.abort();
    const { text, broken } = await all;
    assert.deepEqual([contentChunks(text), broken, text.includes("[DONE]")], [2, true, false]);
    await until(() => engine.stats().requests[0]?.outcome === "aborted");
  });

  it("late health: a probe hangs while tokens flow", async (t) => {
    const engine = await emulate(t);
    await engine.faults.set({ healthDelayMs: 60_000 });
    const leave = new AbortController();
    let answered = false;
    const health = fetch(`${engine.url}/health`, { signal: leave.signal }).then(() => (answered = true));
    assert.equal((await chat(engine)).status, 200);
    assert.equal(answered, false);
    leave.abort();
    await assert.rejects(health);
  });

  it("missing metrics: these are gone and the others stay", async (t) => {
    const engine = await emulate(t);
    await engine.faults.set({ missingMetrics: ["vllm:num_requests_running"] });
    const text = await (await fetch(`${engine.url}/metrics`)).text();
    assert.doesNotMatch(text, /vllm:num_requests_running/);
    assert.match(text, /^vllm:num_requests_waiting\{/m);
  });

  it("slow: the same work takes the engine so many times longer", async (t) => {
    const prefillSeconds = async (slowFactor: number): Promise<number> => {
      const engine = await emulate(t);
      await engine.faults.set({ slowFactor });
      await (await chat(engine, { text: "y".repeat(4000) })).text();
      const text = await (await fetch(`${engine.url}/metrics`)).text();
      return Number(/^vllm:request_prefill_time_seconds_sum\{.*\} (\S+)$/m.exec(text)?.[1]);
    };
    const [normal, slow] = await Promise.all([prefillSeconds(1), prefillSeconds(4)]);
    // Times are differences of large numbers, so not equal to the last digit.
    assert.ok(Math.abs(slow / normal - 4) < 1e-6, `${slow} / ${normal}`);
  });

  it("can be changed over HTTP, and a misspelt one is refused", async (t) => {
    const engine = await emulate(t);
    const change = (body: string): Promise<Response> =>
      fetch(`${engine.url}/emulator/faults`, { method: "POST", body });
    assert.equal((await change('{"slowFactor": 3, "missingMetrics": ["a"]}')).status, 200);
    assert.equal((await change('{"slowFactor": 2}')).status, 200);
    assert.deepEqual([engine.faults.current.slowFactor, engine.faults.current.missingMetrics], [2, ["a"]]);
    const refused = await change('{"slowFaktor": 3}');
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /slowFaktor/);
    await fetch(`${engine.url}/emulator/faults`, { method: "DELETE" });
    assert.equal(engine.faults.current.slowFactor, 1);
    const last = await change('{"refuse": true}');
    assert.equal(last.status, 200);
    await until(async () => (await chat(engine).catch(() => null)) === null);
  });
});

describe("a restart", () => {
  it("cuts streams, empties the cache, zeroes counters and moves the start time, at the same address", async (t) => {
    const engine = await emulate(t, { timeScale: 0.5 });
    const started = async (): Promise<number> => {
      const text = await (await fetch(`${engine.url}/metrics`)).text();
      return Number(/^process_start_time_seconds (\S+)$/m.exec(text)?.[1]);
    };
    const cachedTokens = async (): Promise<number> => {
      const answer = (await (await chat(engine, { text: "z".repeat(400) })).json()) as {
        usage: { prompt_tokens_details: { cached_tokens: number } };
      };
      return answer.usage.prompt_tokens_details.cached_tokens;
    };
    assert.deepEqual([await cachedTokens(), await cachedTokens()], [0, 96]);
    const before = await started();
    const stream = streamChat(engine, { maxTokens: 4000 });
    await until(() => engine.stats().running === 1);
    const { url } = engine;
    await engine.restart();
    assert.equal((await stream).broken, true);
    assert.equal(engine.url, url);
    assert.deepEqual([engine.stats().submitted, engine.stats().incarnations], [0, 2]);
    assert.ok((await started()) > before);
    assert.equal(await cachedTokens(), 0);
    assert.equal(engine.stats().requests.at(-2)?.outcome, "died");
  });

  it("can be asked for over HTTP", async (t) => {
    const engine = await emulate(t);
    assert.equal((await fetch(`${engine.url}/emulator/restart`, { method: "POST" })).status, 200);
    await until(() => engine.stats().incarnations === 2);
    await until(async () => (await chat(engine).catch(() => null))?.status === 200);
  });
});

describe("limits", () => {
  it("an idle connection is closed by the engine", async (t) => {
    const engine = await emulate(t, { keepAliveMs: 20 });
    const socket = connect(engine.port, "127.0.0.1");
    socket.write("GET /version HTTP/1.1\r\nhost: engine\r\n\r\n");
    let text = "";
    socket.on("data", (part) => (text += part.toString()));
    await once(socket, "end");
    assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
    assert.doesNotMatch(text, /keep-alive/i);
    socket.destroy();
  });

  it("a full queue is answered with 503", async (t) => {
    const engine = await emulate(t, { maxRunning: 1, maxQueued: 1, timeScale: 1 });
    const leave = new AbortController();
    const first = chat(engine, { maxTokens: 4000 }, { signal: leave.signal });
    await until(() => engine.stats().running === 1);
    const second = chat(engine, {}, { signal: leave.signal });
    await until(() => engine.stats().waiting === 1);
    const third = await chat(engine);
    assert.deepEqual([third.status, third.headers.get("retry-after")], [503, "1"]);
    leave.abort();
    await Promise.all([assert.rejects(first), assert.rejects(second)]);
  });
});

it("a queue of none refuses only what would have to wait", async (t) => {
  const engine = await emulate(t, { maxRunning: 1, maxQueued: 0, timeScale: 1 });
  assert.equal((await chat(engine, { maxTokens: 1 })).status, 200);
  const leave = new AbortController();
  const first = chat(engine, { maxTokens: 4000 }, { signal: leave.signal });
  await until(() => engine.stats().running === 1);
  assert.equal((await chat(engine)).status, 503);
  leave.abort();
  await assert.rejects(first);
});

describe("data-parallel ranks", () => {
  it("have caches and metrics of their own, chosen by header", async (t) => {
    const engine = await emulate(t, { dataParallelRanks: 2 });
    const ask = async (rank: string): Promise<number> => {
      const response = await chat(engine, { text: "q".repeat(400) }, { headers: { "x-data-parallel-rank": rank } });
      if (response.status !== 200) return -response.status;
      const answer = (await response.json()) as { usage: { prompt_tokens_details: { cached_tokens: number } } };
      return answer.usage.prompt_tokens_details.cached_tokens;
    };
    assert.deepEqual([await ask("0"), await ask("1"), await ask("1"), await ask("2")], [0, 0, 96, -400]);
    const text = await (await fetch(`${engine.url}/metrics`)).text();
    assert.match(text, /^vllm:request_generation_tokens_count\{engine="0".*\} 1\.0$/m);
    assert.match(text, /^vllm:request_generation_tokens_count\{engine="1".*\} 2\.0$/m);
  });
});
