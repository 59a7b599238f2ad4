// Behaviours 38 and 39: what passes untouched, and what never passes.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { hashClientKey } from "#src/gateway/clientKey.ts";
import { bodyOf, json, post, talk } from "../dispatchRig.ts";
import { chat, MODEL, setUp, until, type Setup } from "../gatewaySetup.ts";
import { answer, asked, headerOf, Worker } from "./worker.ts";

function portOf(url: string): number {
  return Number(new URL(url).port);
}

async function send(setup: Setup, bytes: string | Buffer): Promise<string> {
  return (await talk(portOf(setup.url), bytes, (so) => /\r\n\r\n.*\}$/s.test(so))).text;
}

/** What each path needs for its engine to make anything of a request. */
const PROMPTS: Record<string, Record<string, unknown>> = {
  "/v1/chat/completions": { messages: [{ role: "user", content: "x" }] },
  "/v1/completions": { prompt: "x" },
  "/v1/responses": { input: "x" },
  "/v1/messages": { messages: [{ role: "user", content: "x" }], max_tokens: 3 },
  "/v1/embeddings": { input: "x" },
  "/v1/rerank": { query: "x", documents: [] },
  "/score": { text_1: "x", text_2: "y" },
  "/tokenize": { prompt: "x" },
  "/v1/a/path/of/tomorrow": {},
};

/** Values that the router reads for its own ends, as nobody should write them, and as somebody will. */
const ODD: readonly Record<string, unknown>[] = [
  { max_tokens: null },
  { max_tokens: "12" },
  { max_tokens: -1 },
  { max_tokens: 1.5 },
  { max_completion_tokens: 1e21 },
  { n: 0 },
  { n: "two" },
  { n: [] },
  { stream: "yes" },
  { stream: 1 },
  { user: 7 },
  { user: {} },
  { prompt_cache_key: null },
  { cache_salt: 5 },
  { metadata: "text" },
  { messages: [] },
  { messages: "not a list" },
  { messages: [{ role: "oracle", content: null }, { role: 5 }, "text", null, []] },
  { messages: [{ role: "user", content: [{ type: "hologram", hologram: { url: "x" } }, 7, null] }] },
  { input: [{ type: "item_of_tomorrow", content: [{ type: "input_scent", strength: 2 }] }] },
  { tool_choice: { type: "telepathy" }, tools: [{ type: "web_search_2031" }, null] },
  { response_format: { type: "haiku" }, reasoning_effort: "ultra", service_tier: "platinum", verbosity: 11 },
  { stream_options: "all" },
  { priority: "now" },
  { temperature: "hot", logit_bias: [], stop: 5 },
];

describe("38. requests and answers", () => {
  it("with unknown fields, roles, enum values and wrong types pass untouched, on every path", async () => {
    await using worker = await Worker.start(({ socket }) => void socket.write(json({ object: "x", future: [1] })));
    await using setup = await setUp([], { engines: [worker.url] }, 1);
    for (const [path, prompt] of Object.entries(PROMPTS)) {
      for (const odd of ODD) {
        const body = JSON.stringify({ model: MODEL, ...prompt, ...odd });
        const text = await send(setup, post(body, "Connection: close\r\n", path));
        assert.match(text, /^HTTP\/1\.1 200 /, `${path} ${body}: ${text}`);
        assert.equal(worker.requests.at(-1)?.body.toString(), body);
        assert.equal(bodyOf(text), `{"object":"x","future":[1]}`);
      }
    }
    assert.equal(worker.requests.length, Object.keys(PROMPTS).length * ODD.length);
  });

  it("of any content pass byte by byte", async () => {
    const blanks = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
    await using worker = await Worker.start(({ socket, body }) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Type: text/odd\r\nContent-Length: ${body.length}\r\n\r\n`);
      socket.write(body);
    });
    await using setup = await setUp([], { engines: [worker.url], log: { requests: false } }, 1);
    const members = fc.dictionary(fc.string({ unit: "grapheme", maxLength: 12 }), fc.jsonValue(), { maxKeys: 6 });
    await fc.assert(
      fc.asyncProperty(members, blanks, fc.constantFrom(...Object.keys(PROMPTS)), async (extra, blank, path) => {
        const { model: _model, stream: _stream, ...rest } = extra;
        const inner = JSON.stringify({ ...rest, ...PROMPTS[path], model: MODEL }, null, blank.length).slice(1, -1);
        const body = `${blank}{${blank}${inner}${blank}}${blank}`;
        const text = await send(setup, Buffer.from(post(body, "Connection: close\r\n", path)));
        assert.match(text, /^HTTP\/1\.1 200 /, `${body}: ${text}`);
        assert.ok(worker.requests.at(-1)?.body.equals(Buffer.from(body)), body);
        assert.equal(Buffer.from(bodyOf(text), "latin1").toString(), body);
      }),
      { numRuns: 300, seed: 38 },
    );
  });

  it("of unknown status, events and headers reach the client", async () => {
    const event = `event: response.of_tomorrow\ndata: {"type":"response.of_tomorrow"}\n\n`;
    const replies = [
      `HTTP/1.1 299 Odd\r\nContent-Length: 2\r\nX-Tomorrow: a\r\nX-Tomorrow: b\r\n\r\n{}`,
      `HTTP/1.1 422 No\r\nContent-Type: application/problem+json\r\nContent-Length: 9\r\n\r\n{"new":1}`,
      `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n${event}`,
    ];
    let nth = 0;
    await using worker = await Worker.start(({ socket }) => {
      socket.write(replies[nth]!);
      if (nth++ === 2) socket.end();
    });
    await using setup = await setUp([], { engines: [worker.url] }, 1);
    const body = JSON.stringify({ model: MODEL, input: "x", stream: true });
    const odd = await talk(portOf(setup.url), post(body, "Connection: close\r\n", "/v1/responses"));
    assert.match(odd.text, /^HTTP\/1\.1 299 .*X-Tomorrow: a\r\nX-Tomorrow: b\r\n/s);
    const refused = await talk(portOf(setup.url), post(body, "Connection: close\r\n", "/v1/responses"));
    assert.match(refused.text, /^HTTP\/1\.1 422 .*application\/problem\+json.*\r\n\r\n\{"new":1\}$/s);
    const stream = await talk(portOf(setup.url), post(body, "Connection: close\r\n", "/v1/responses"));
    assert.equal(bodyOf(stream.text), event);
  });
});

const SECRETS = { client: "kv-client-secret-1", engine: "engine-secret-22", admin: "admin-secret-333" };

describe("39. keys and addresses", () => {
  it("the client's key reaches no engine, no log, no metric, no admin answer; the engine's reaches no client", async () => {
    await using worker = await Worker.start(({ socket, body }) => {
      socket.write(body.includes("fail") ? json({}, "500 Internal Server Error") : answer());
    });
    await using setup = await setUp(
      [],
      {
        engines: [{ url: worker.url, apiKey: SECRETS.engine }],
        keys: [{ name: "team", hash: hashClientKey(SECRETS.client) }],
        admin: { token: SECRETS.admin },
      },
      1,
    );
    const ways: Record<string, string>[] = [
      { authorization: `Bearer ${SECRETS.client}` },
      { authorization: `bearer   ${SECRETS.client}` },
      { "x-api-key": SECRETS.client },
      { authorization: `Bearer ${SECRETS.client}`, "x-api-key": SECRETS.client, "api-key": SECRETS.client },
      {
        "x-api-key": SECRETS.client,
        cookie: `key=${SECRETS.client}`,
        "proxy-authorization": `Basic ${SECRETS.client}`,
      },
    ];
    const told: string[] = [];
    for (const headers of ways) {
      for (const user of ["good", "fail"]) {
        const response = await chat(setup.url, { user }, headers);
        told.push(JSON.stringify([...response.headers]), await response.text());
      }
    }
    for (const key of ["wrong", SECRETS.engine, SECRETS.admin, `${SECRETS.client}x`, "", `${SECRETS.client} x`]) {
      const response = await chat(setup.url, {}, { authorization: `Bearer ${key}` });
      assert.equal(response.status, 401, key);
      told.push(await response.text());
    }
    assert.equal(worker.requests.length, 2 * ways.length);
    for (const request of worker.requests) {
      assert.ok(!request.head.includes(SECRETS.client), request.head);
      assert.equal(headerOf(request, "authorization"), `Bearer ${SECRETS.engine}`);
    }
    const authorization = `Bearer ${SECRETS.admin}`;
    for (const path of ["status", "config", "metrics", "decisions", "replicas", "readyz"])
      told.push(await (await fetch(`${setup.adminUrl}/${path}`, { headers: { authorization } })).text());
    for (const secret of Object.values(SECRETS))
      assert.ok(![...told, JSON.stringify(setup.logged)].join().includes(secret));
    assert.ok(setup.logged.some(({ tenant }) => tenant === "team"));
  });

  it("an engine without a key of its own gets none", async () => {
    await using worker = await Worker.start(({ socket }) => void socket.write(answer()));
    await using setup = await setUp([], { engines: [worker.url] }, 1);
    await chat(setup.url, {}, { authorization: "Bearer a-secret", "x-api-key": "a-secret", cookie: "a-secret" });
    assert.doesNotMatch(worker.requests[0]!.head, /a-secret|^(authorization|x-api-key|cookie):/im);
  });

  it("nothing that a client sends chooses an address", async () => {
    let visits = 0;
    const canary = createServer((socket) => {
      visits++;
      socket.destroy();
    });
    await new Promise<void>((listening) => canary.listen(0, "127.0.0.1", listening));
    const address = `127.0.0.1:${(canary.address() as AddressInfo).port}`;
    const target = `http://${address}`;
    try {
      await using worker = await Worker.start(({ socket }) => void socket.write(answer()));
      await using setup = await setUp([], { engines: [worker.url] }, 1);
      const body = JSON.stringify({
        model: MODEL,
        prompt: "x",
        api_base: target,
        base_url: target,
        url: target,
        engine: target,
        bootstrap_host: "127.0.0.1",
        bootstrap_port: Number(address.split(":")[1]),
        kv_transfer_params: { remote_host: "127.0.0.1", remote_port: Number(address.split(":")[1]) },
        do_remote_prefill: target,
      });
      const names = ["host", "x-forwarded-host", "forwarded", "x-original-url", "x-rewrite-url", "x-kvasir-replica"];
      names.push(
        "x-engine-url",
        "x-upstream",
        "x-prefiller-host-port",
        "destination",
        "x-gateway-destination-endpoint",
      );
      const lines = (name: string): string => `${name === "host" ? "" : "Host: router\r\n"}${name}: ${address}\r\n`;
      for (const name of names) {
        for (const path of ["/v1/completions", `${target}/v1/completions`, `http://user@${address}/v1/completions`]) {
          const head = `POST ${path} HTTP/1.1\r\n${lines(name)}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
          const text = await send(setup, head + body);
          assert.match(text, /^HTTP\/1\.1 (200|400) /, `${name} ${path}: ${text}`);
        }
      }
      assert.ok(worker.requests.length >= 2 * names.length);
      for (const request of worker.requests) {
        assert.equal(headerOf(request, "host"), worker.id);
        assert.match(request.head, /^POST \/v1\/completions HTTP\/1\.1\r\n/);
        const kept = Object.keys(asked(request)).sort();
        assert.deepEqual(kept, ["api_base", "base_url", "engine", "model", "prompt", "url"]);
      }
      assert.equal(visits, 0);
    } finally {
      canary.close();
    }
  });

  it("admin has a listener and a token of its own; a client's key opens nothing there, and clients' listener no admin", async () => {
    await using worker = await Worker.start(({ socket }) => void socket.write(answer()));
    await using setup = await setUp(
      [],
      {
        engines: [worker.url],
        keys: [{ name: "team", hash: hashClientKey(SECRETS.client) }],
        admin: { token: SECRETS.admin },
      },
      1,
    );
    const routes = ["GET /status", "GET /config", "GET /metrics", "GET /decisions", "GET /replicas"];
    routes.push(
      "POST /replicas",
      `DELETE /replicas/${worker.id}`,
      `POST /replicas/${worker.id}/drain`,
      "GET /requests/x",
    );
    for (const route of routes) {
      const [method = "", path = ""] = route.split(" ");
      for (const key of [null, SECRETS.client, `${SECRETS.admin}x`, SECRETS.admin.slice(0, -1), ""]) {
        const headers: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` };
        assert.equal((await fetch(`${setup.adminUrl}${path}`, { method, headers })).status, 401, `${route} ${key}`);
      }
      const asClient = { authorization: `Bearer ${SECRETS.client}` };
      const there = await fetch(`${setup.url}${path}`, { method, headers: asClient });
      assert.doesNotMatch(await there.text(), /"replicas"|"decisions"|kvasir_/);
    }
    assert.doesNotMatch(
      await (await fetch(`${setup.adminUrl}/`)).text(),
      /127\.0\.0\.1/,
      "the page alone tells nothing",
    );
    const authorization = `Bearer ${SECRETS.admin}`;
    assert.equal((await fetch(`${setup.adminUrl}/status`, { headers: { authorization } })).status, 200);
    assert.equal(setup.router.fleet.replicas().length, 1);
    assert.equal(setup.router.fleet.replicas()[0]?.lifecycle.state, "ready");
  });

  it("an admin listener without a token serves this machine's own programs only, not pages in its browser", async () => {
    await using setup = await setUp([]);
    const port = portOf(setup.adminUrl);
    const get = async (headers: string): Promise<string> =>
      (await talk(port, `GET /status HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`)).text.slice(9, 12);
    assert.equal(await get(`Host: 127.0.0.1:${port}\r\n`), "200");
    assert.equal(await get(`Host: localhost:${port}\r\n`), "200");
    assert.equal(await get(`Host: rebound.example:${port}\r\n`), "403");
    assert.equal(await get(`Host: 127.0.0.1:${port}\r\nOrigin: https://elsewhere.example\r\n`), "403");
    await until("it still serves", async () => (await fetch(`${setup.adminUrl}/status`)).ok);
  });
});
