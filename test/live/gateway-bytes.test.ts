import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { chat, MODEL, setUp } from "./gatewaySetup.ts";
import { startScriptedEngine } from "./scriptedEngine.ts";

/** As no engine writes it, but as the protocol allows. */
const AWKWARD_STREAM = Buffer.from(
  `: a comment\r\n\r\ndata:{"id":"1","choices":[{"delta":{"content":"grüß 🦜"}}]}\r\n\r\n` +
    `event: x\ndata: {"id":"1",  "choices":[{"delta":{"content":"\\ud83e\\udd9c"}}], "unknown": [1.0, 1e3]}\n\n` +
    `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\ndata: [DONE]\n\n`,
);

async function raw(url: string, path: string, body: Buffer, headers: Record<string, string>) {
  const outgoing = httpRequest(`${url}${path}`, { method: "POST", headers });
  outgoing.end(body);
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  return { status: incoming.statusCode, headers: incoming.headers, body: Buffer.concat(pieces) };
}

const json = { "content-type": "application/json" };

describe("bytes", () => {
  it("of a stream arrive as they were sent, wherever they were split", async () => {
    for (const pieceBytes of [1, 7, 1000]) {
      await using engine = await startScriptedEngine((_request, response) => {
        response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "x-engine": "a,b" });
        let at = 0;
        const next = (): void => {
          if (at >= AWKWARD_STREAM.length) return void response.end();
          response.write(AWKWARD_STREAM.subarray(at, (at += pieceBytes)), () => setImmediate(next));
        };
        next();
      });
      await using setup = await setUp([], { engines: [engine.url] }, 1);
      const body = { stream: true, stream_options: { include_usage: true } };
      const response = await chat(setup.url, body);
      assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
      assert.equal(response.headers.get("x-engine"), "a,b");
      assert.deepEqual(Buffer.from(await response.arrayBuffer()), AWKWARD_STREAM);
    }
  });

  it("of answers are untouched: compressed, empty, unknown status, client errors", async () => {
    const zipped = gzipSync(`{"any":"thing"}`);
    const answers: Record<string, readonly [number, Record<string, string>, Buffer]> = {
      "/v1/embeddings": [200, { "content-encoding": "gzip", "content-type": "application/json" }, zipped],
      "/v1/completions": [422, { "content-type": "text/plain" }, Buffer.from("not like this")],
      "/v1/rerank": [299, {}, Buffer.alloc(0)],
      "/score": [400, { "content-type": "application/json" }, Buffer.from(`{"error":{"message":"x","code":400}}`)],
    };
    await using engine = await startScriptedEngine(({ url }, response) => {
      const [status, headers, body] = answers[url]!;
      response.writeHead(status, headers).end(body);
    });
    await using setup = await setUp([], { engines: [engine.url] }, 1);
    for (const [path, [status, headers, body]] of Object.entries(answers)) {
      const answer = await raw(setup.url, path, Buffer.from(`{"model":"${MODEL}","input":"x"}`), json);
      assert.equal(answer.status, status, path);
      for (const [name, value] of Object.entries(headers)) assert.equal(answer.headers[name], value);
      assert.deepEqual(answer.body, body, path);
    }
    const [replica] = setup.router.fleet.replicas();
    assert.equal(replica?.lifecycle.state, "ready");
  });

  it("of an answer are waited for that come long after its head", async () => {
    await using engine = await startScriptedEngine((_request, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "2" }).flushHeaders();
      // Longer than the time between two looks at the limits.
      setTimeout(() => response.end("{}"), 350);
    });
    await using setup = await setUp([], { engines: [engine.url] }, 1);
    const answer = await chat(setup.url, {});
    assert.equal(await answer.text(), "{}");
  });

  it("of requests arrive as they were sent: spacing, unknown fields, repeated keys, query", async () => {
    await using engine = await startScriptedEngine((_request, response) => response.end("{}"));
    await using setup = await setUp([], { engines: [engine.url] }, 1);
    const body = Buffer.from(
      `{ "tool_choice" : {"new":"kind"},\n\t"model":"${MODEL}", "messages": [{"role":"oracle","content":"\\u00fc ü 🦜"}], "n": 1.0, "n":1e0 }\n`,
    );
    const answer = await raw(setup.url, "/v1/chat/completions?beta=true&x=%2F", body, { ...json, "x-extra": "kept" });
    assert.equal(answer.status, 200);
    const [seen] = engine.seen;
    assert.equal(seen?.url, "/v1/chat/completions?beta=true&x=%2F");
    assert.deepEqual(seen?.body, body);
    assert.equal(seen?.headers["x-extra"], "kept");
    assert.equal(seen?.headers["content-length"], String(body.length));
  });

  it("of a large request, which a thread reads, arrive as they were sent, and the prompt is recognised again", async () => {
    await using engine = await startScriptedEngine((_request, response) => response.end("{}"));
    const models = { [MODEL]: { aliases: ["gpt-4o"] } };
    await using setup = await setUp([], { engines: [engine.url], models }, 1);
    const written = (model: string): string =>
      `{"prompt":"${"many words of a long prompt, ".repeat(20_000)}","model":"${model}","max_tokens":1}`;
    for (let at = 0; at < 2; at++) {
      const answer = await raw(setup.url, "/v1/completions", Buffer.from(written("gpt-4o")), json);
      assert.equal(answer.status, 200);
      assert.ok(engine.seen[at]?.body.equals(Buffer.from(written(MODEL))));
    }
    const [second] = setup.router.decisions.recent(1);
    assert.ok(second!.cachedTokens(second!.chosen) > 0.9 * second!.promptTokens);
  });

  it("of a form arrive as they were sent, with the model anywhere in it", async () => {
    await using engine = await startScriptedEngine((_request, response) => response.end(`{"text":"hi"}`));
    await using setup = await setUp([], { engines: [engine.url], models: { [MODEL]: { aliases: ["whisper-1"] } } }, 1);
    for (const name of [MODEL, "whisper-1"]) {
      const audio = Buffer.from([0, 255, 13, 10, 45, 45, 0]);
      const part = (head: string, value: Buffer): Buffer =>
        Buffer.concat([
          Buffer.from(`--xyz\r\ncontent-disposition: form-data; ${head}\r\n\r\n`),
          value,
          Buffer.from("\r\n"),
        ]);
      const form = (model: string): Buffer =>
        Buffer.concat([
          part(`name="file"; filename="a.wav"`, audio),
          part(`name="model"`, Buffer.from(model)),
          part(`name="language"`, Buffer.from("de")),
          Buffer.from("--xyz--\r\n"),
        ]);
      const headers = { "content-type": "multipart/form-data; boundary=xyz" };
      const answer = await raw(setup.url, "/v1/audio/transcriptions", form(name), headers);
      assert.equal(answer.body.toString(), `{"text":"hi"}`);
      assert.deepEqual(engine.seen.at(-1)?.body, form(MODEL));
      assert.equal(engine.seen.at(-1)?.headers["content-type"], headers["content-type"]);
    }
  });
});

describe("what the router changes", () => {
  it("is the model's name where an alias was used, and nothing else", async () => {
    await using engine = await startScriptedEngine((_request, response) => response.end("{}"));
    const models = { [MODEL]: { aliases: ["gpt-4o"] } };
    await using setup = await setUp([], { engines: [engine.url], models }, 1);
    const written = (model: string): string => `{"temperature":0.10,"model" :"${model}","prompt":"hi","max_tokens":1}`;
    await raw(setup.url, "/v1/completions", Buffer.from(written("gpt-4o")), json);
    assert.equal(engine.seen[0]?.body.toString(), written(MODEL));
  });

  it("is what no client may say: transfer parameters, ranks, bootstrap", async () => {
    await using engine = await startScriptedEngine((_request, response) => response.end("{}"));
    await using setup = await setUp([], { engines: [engine.url] }, 1);
    await chat(
      setup.url,
      { kv_transfer_params: { do_remote_decode: true }, bootstrap_room: 7, data_parallel_rank: 3, max_tokens: 2 },
      { "x-data-parallel-rank": "5" },
    );
    const [seen] = engine.seen;
    const body = JSON.parse(seen?.body.toString() ?? "") as Record<string, unknown>;
    assert.deepEqual(Object.keys(body).sort(), ["max_tokens", "messages", "model"]);
    assert.equal(seen?.headers["x-data-parallel-rank"], undefined);
  });

  it("is the usage chunk that it asked for itself, which the client does not see", async () => {
    const chunk = `data: {"id":"1","choices":[{"delta":{"content":"x"}}]}\n\n`;
    const usage = `data: {"id":"1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4}}}\n\n`;
    await using engine = await startScriptedEngine((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`${chunk}${usage}data: [DONE]\n\n`);
    });
    await using setup = await setUp([], { engines: [engine.url] }, 1);
    const response = await chat(setup.url, { stream: true });
    assert.equal(await response.text(), `${chunk}data: [DONE]\n\n`);
    assert.match(engine.seen[0]?.body.toString() ?? "", /"include_usage":true/);
    const record = setup.logged.find(({ kind }) => kind === "request");
    assert.equal(record?.["cachedTokensReported"], 4);
  });

  it("never is the client's key: the engine gets its own or none", async () => {
    const seenKeys: (string | undefined)[] = [];
    const script = (request: { headers: Record<string, unknown> }, response: { end(body: string): void }): void => {
      seenKeys.push(request.headers["authorization"] as string | undefined, request.headers["x-api-key"] as string);
      response.end("{}");
    };
    await using bare = await startScriptedEngine(script);
    await using keyed = await startScriptedEngine(script);
    const engines = [bare.url, { url: keyed.url, apiKey: "engine-secret" }];
    await using setup = await setUp([], { engines, policy: "round-robin" }, 2);
    for (let at = 0; at < 2; at++) {
      await chat(setup.url, {}, { authorization: "Bearer client-secret", "x-api-key": "client-secret" });
    }
    assert.deepEqual(new Set(seenKeys), new Set(["Bearer engine-secret", undefined]));
    assert.equal(seenKeys.filter((key) => key === "Bearer engine-secret").length, 1);
    assert.ok(!JSON.stringify(setup.logged).includes("client-secret"));
  });
});
