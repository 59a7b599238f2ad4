import assert from "node:assert/strict";
import { connect } from "node:net";
import { describe, it } from "node:test";
import { hashClientKey } from "#src/gateway/clientKey.ts";
import { chat, MODEL, setUp } from "./gatewaySetup.ts";

const KEYS = { full: "key-of-full-1", narrow: "key-of-narrow-2", slow: "key-of-slow-3" };

function key(name: keyof typeof KEYS, more: Record<string, unknown> = {}) {
  return { name, hash: hashClientKey(KEYS[name]), ...more };
}

function bearer(name: keyof typeof KEYS): Record<string, string> {
  return { authorization: `Bearer ${KEYS[name]}` };
}

async function errorOf(response: Response): Promise<[number, unknown]> {
  const { error } = (await response.json()) as { error: { code: unknown } };
  return [response.status, error.code];
}

/** Sends bytes as they are and returns what comes back until the connection closes or falls silent for a while. */
function exchange(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(Number(port), hostname, () => socket.write(text));
    socket.on("data", (bytes) => {
      answer += bytes.toString();
      if (/\r\n\r\n/.test(answer)) socket.end();
    });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
    socket.setTimeout(5_000, () => socket.destroy());
  });
}

describe("client keys", () => {
  it("open what they open and no more", async () => {
    await using setup = await setUp([{ adapters: ["sql"] }], {
      keys: [key("full"), key("narrow", { models: ["sql"], class: "batch" })],
    });
    assert.deepEqual(await errorOf(await chat(setup.url, {})), [401, "unauthorized"]);
    assert.deepEqual(await errorOf(await chat(setup.url, {}, { authorization: "Bearer nope" })), [401, "unauthorized"]);
    assert.equal(setup.logged.filter(({ code }) => code === "unauthorized").length, 2, "refusals have a line too");
    assert.equal((await chat(setup.url, {}, bearer("full"))).status, 200);
    assert.deepEqual(await errorOf(await chat(setup.url, {}, bearer("narrow"))), [404, "model_not_found"]);
    assert.equal((await chat(setup.url, { model: "sql" }, { "x-api-key": KEYS.narrow })).status, 200);
    const list = (await (await fetch(`${setup.url}/v1/models`, { headers: bearer("narrow") })).json()) as {
      data: { id: string }[];
    };
    assert.deepEqual(
      list.data.map(({ id }) => id),
      ["sql"],
    );

    const records = setup.logged.filter(({ kind, status }) => kind === "request" && status === 200);
    assert.deepEqual(
      records.map(({ tenant, className }) => [tenant, className]),
      [
        ["full", "standard"],
        ["narrow", "batch"],
      ],
    );
    for (const name of Object.values(KEYS)) assert.ok(!JSON.stringify(setup.logged).includes(name));
  });

  it("choose a class only if they may, and only one that exists", async () => {
    await using setup = await setUp([{}], { keys: [key("full", { mayChooseClass: true }), key("narrow")] });
    const asked = (name: keyof typeof KEYS, className: string): Promise<Response> =>
      chat(setup.url, {}, { ...bearer(name), "x-kvasir-class": className });
    assert.equal((await asked("full", "interactive")).status, 200);
    assert.deepEqual(await errorOf(await asked("full", "royal")), [400, "invalid_request"]);
    assert.deepEqual(await errorOf(await asked("narrow", "interactive")), [403, "forbidden"]);
  });

  it("have rates: requests and tokens per minute, with the time to come back", async () => {
    await using setup = await setUp([{}], {
      keys: [key("slow", { requestsPerMinute: 2 }), key("full", { tokensPerMinute: 60 }), key("narrow")],
    });
    for (let at = 0; at < 2; at++) assert.equal((await chat(setup.url, {}, bearer("slow"))).status, 200);
    const limited = await chat(setup.url, {}, bearer("slow"));
    assert.ok(Number(limited.headers.get("retry-after")) >= 25);
    assert.deepEqual(await errorOf(limited), [429, "rate_limited"]);

    // The first is estimated at more than it uses; the difference comes back, or the second would not fit.
    assert.equal((await chat(setup.url, { max_tokens: 10 }, bearer("full"))).status, 200);
    assert.equal((await chat(setup.url, { max_tokens: 20 }, bearer("full"))).status, 200);
    assert.deepEqual(await errorOf(await chat(setup.url, { max_tokens: 40 }, bearer("full"))), [429, "rate_limited"]);
    assert.equal((await chat(setup.url, { max_tokens: 40 }, bearer("narrow"))).status, 200);
  });
});

describe("requests that make no sense", () => {
  it("get an error in the shape of their API, with a stable code and the request's id", async () => {
    await using setup = await setUp([{}]);
    const post = (path: string, body: string, headers: Record<string, string> = {}): Promise<Response> =>
      fetch(`${setup.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body,
      });
    const response = await chat(setup.url, { model: "nope" });
    const requestId = response.headers.get("x-request-id");
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    assert.deepEqual(
      [response.status, error["code"], error["type"], error["param"], error["request_id"], error["retryable"]],
      [404, "model_not_found", "invalid_request_error", "model", requestId, false],
    );
    assert.deepEqual(await errorOf(await post("/v1/chat/completions", "{")), [400, "invalid_json"]);
    assert.deepEqual(await errorOf(await post("/v1/chat/completions", `{"model":1}`)), [400, "missing_model"]);
    assert.deepEqual(await errorOf(await post("/v1/load_lora_adapter", `{"model":"${MODEL}"}`)), [403, "forbidden"]);
    assert.deepEqual(await errorOf(await post("/emulator/restart", "{}")), [403, "forbidden"]);
    const anthropic = await post("/v1/messages", `{"model":"nope","messages":[]}`);
    const body = (await anthropic.json()) as Record<string, Record<string, unknown>>;
    assert.equal(body["type"], "error");
    assert.equal(body["error"]?.["type"], "not_found_error");
    assert.equal(anthropic.headers.get("request-id"), body["request_id"]);
  });

  it("reach the only model there is if they name none, as they would an engine alone", async () => {
    await using setup = await setUp([{}]);
    const messages = [{ role: "user", content: "Hello" }];
    for (const model of [undefined, null]) {
      const answer = await chat(setup.url, { model, messages, max_tokens: 2 });
      assert.deepEqual([answer.status, ((await answer.json()) as { model: string }).model], [200, MODEL]);
    }
  });

  it("are explained on the wall clock, in whole tokens", async () => {
    await using setup = await setUp([{}]);
    const before = Date.now();
    await (await chat(setup.url, { messages: [{ role: "user", content: "ab ".repeat(1_001) }] })).text();
    const found = (await (await fetch(`${setup.adminUrl}/decisions?limit=1`)).json()) as {
      decisions: { atMs: number; promptTokens: number; candidates: { cachedTokens: number }[] }[];
    };
    const [decision] = found.decisions;
    assert.ok(decision!.atMs >= before - 5 && decision!.atMs <= Date.now() + 5, String(decision!.atMs));
    for (const tokens of [decision!.promptTokens, decision!.candidates[0]!.cachedTokens])
      assert.ok(Number.isInteger(tokens), String(tokens));
  });

  it("are refused by size before their body is read", async () => {
    await using setup = await setUp([{}], { limits: { bodyBytes: 1000, headerBytes: 2048 } });
    const head = "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    assert.match(
      await exchange(setup.url, `${head}content-length: 1001\r\n\r\n`),
      /^HTTP\/1\.1 413 [^]*body_too_large/,
    );
    assert.match(
      await exchange(setup.url, `${head}x: ${"y".repeat(3000)}\r\n\r\n`),
      /^HTTP\/1\.1 431 [^]*headers_too_large/,
    );
  });

  it("never reach an engine in a form that only the engine could unpack", async () => {
    await using setup = await setUp([{}]);
    const body = { kv_transfer_params: { do_remote_prefill: true } };
    assert.deepEqual(await errorOf(await chat(setup.url, body, { "content-encoding": "gzip" })), [
      415,
      "unsupported_media_type",
    ]);
    assert.equal((await chat(setup.url, body, { "content-encoding": "identity" })).status, 200);
  });

  it("never reach an engine by a trick of framing or address", async () => {
    await using setup = await setUp([{}]);
    const length = "content-length: 5\r\n";
    const tricks = [
      `POST /v1/completions HTTP/1.1\r\nhost: x\r\n${length}content-length: 6\r\n\r\nhello`,
      `POST /v1/completions HTTP/1.1\r\nhost: x\r\n${length}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      `POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\nhello`,
      `POST /v1/completions HTTP/1.1\nhost: x\n${length}\nhello`,
      `GET //${new URL(setup.engines[0]!.url).host}/metrics HTTP/1.1\r\nhost: x\r\n\r\n`,
      `CONNECT 10.0.0.1:80 HTTP/1.1\r\nhost: 10.0.0.1:80\r\n\r\n`,
      `GET /v1/../metrics HTTP/1.1\r\nhost: x\r\n\r\n`,
    ];
    const before = setup.engines[0]!.stats().received.filter(({ method }) => method === "POST").length;
    for (const trick of tricks) assert.match(await exchange(setup.url, trick), /^HTTP\/1\.1 [45]\d\d /, trick);
    assert.equal(setup.engines[0]!.stats().received.filter(({ method }) => method === "POST").length, before);
  });
});

describe("the model of a request that names none", () => {
  it("is the fleet's only one", async () => {
    await using setup = await setUp([{}]);
    const response = await fetch(`${setup.url}/tokenize`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: `{"prompt":"one two three"}`,
    });
    assert.equal(response.status, 200);
    assert.ok(((await response.json()) as { count: number }).count > 0);
  });

  it("is an error where there are two", async () => {
    await using setup = await setUp([{}, { model: "llama-3.1-8b" }]);
    const response = await fetch(`${setup.url}/tokenize`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: `{"prompt":"one two three"}`,
    });
    assert.deepEqual(await errorOf(response), [400, "missing_model"]);
  });
});
