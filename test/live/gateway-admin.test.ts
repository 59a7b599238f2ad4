import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { generate } from "selfsigned";
import { Agent, request } from "undici";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError } from "#src/config/configError.ts";
import { configFrom } from "#src/config/loadConfig.ts";
import { startEmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { startRouter } from "#src/gateway/router.ts";
import { chat, FAST, MODEL, routable, setUp, until } from "./gatewaySetup.ts";
import { startScriptedEngine } from "./scriptedEngine.ts";

type Json = Record<string, unknown>;

async function get(url: string): Promise<Json> {
  return (await (await fetch(url)).json()) as Json;
}

describe("the admin listener", () => {
  it("explains every decision: terms of all candidates, ages, branch", async () => {
    await using setup = await setUp([{}, {}]);
    const response = await chat(setup.url, {}, { "x-kvasir-explain": "1" });
    const header = response.headers.get("x-kvasir-explain") ?? "";
    assert.match(header, /winner=127\.0\.0\.1:\d+ total=.*queue=.*prefill=.* \| runner-up=127\.0\.0\.1:\d+ total=/);
    const id = response.headers.get("x-kvasir-decision") ?? "";
    const decision = await get(`${setup.adminUrl}/decisions/${id}`);
    assert.equal(decision["winner"], response.headers.get("x-kvasir-replica"));
    const candidates = decision["candidates"] as {
      terms: Record<string, { ms: number; basis: string }>;
      totalMs: number;
    }[];
    assert.equal(candidates.length, 2);
    for (const { terms, totalMs } of candidates) {
      assert.ok(totalMs > 0);
      for (const term of ["queue", "prefill", "decode", "interference", "eviction", "lateness"])
        assert.ok(terms[term], term);
    }
    assert.equal((await chat(setup.url, {})).headers.get("x-kvasir-explain"), null);
    const { decisions } = (await get(`${setup.adminUrl}/decisions?limit=1`)) as { decisions: Json[] };
    assert.equal(decisions.length, 1);
    assert.equal((await fetch(`${setup.adminUrl}/decisions?limit=x`)).status, 400);
    assert.equal((await fetch(`${setup.adminUrl}/decisions/none`)).status, 404);
  });

  it("adds, drains and removes replicas while requests flow", async () => {
    await using setup = await setUp([{}]);
    const second = await startEmulatedEngine(FAST);
    try {
      const post = (path: string, body?: unknown): Promise<Response> =>
        fetch(`${setup.adminUrl}${path}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
      const added = await post("/replicas", { url: second.url, apiKey: "secret-of-engine", labels: { rack: "r1" } });
      assert.equal(added.status, 201);
      assert.ok(!(await added.text()).includes("secret-of-engine"));
      await until("both take requests", () => routable(setup.router) === 2);
      const [first] = setup.router.fleet.replicas();
      assert.equal((await post(`/replicas/${encodeURIComponent(first!.id)}/drain`)).status, 200);
      for (let at = 0; at < 4; at++)
        assert.equal((await chat(setup.url, {})).headers.get("x-kvasir-replica"), new URL(second.url).host);
      assert.equal((await post(`/replicas/${first!.id}/resume`)).status, 200);
      const name = encodeURIComponent(new URL(second.url).host);
      assert.equal((await fetch(`${setup.adminUrl}/replicas/${name}`, { method: "DELETE" })).status, 200);
      assert.equal(setup.router.fleet.replicas().length, 1);
      assert.equal((await fetch(`${setup.adminUrl}/replicas/${name}`, { method: "DELETE" })).status, 404);
      assert.equal((await fetch(`${setup.adminUrl}/replicas/${first!.id}`, { method: "DELETE" })).status, 400);
      assert.equal((await post("/replicas", { url: "ftp://x" })).status, 400);
      const twin = await post("/replicas", { url: setup.engines[0]!.url, name: "twin" });
      assert.deepEqual([twin.status, /is there already, as/.test(await twin.text())], [400, true]);
      const form = await fetch(`${setup.adminUrl}/replicas`, { method: "POST", body: `{"url":"http://10.9.9.9"}` });
      assert.equal(form.status, 415);
    } finally {
      await second.stop();
    }
  });

  it("says how the router is, with reasons, and shows no secret", async () => {
    await using setup = await setUp([{}], { keys: [{ name: "a", hash: `sha256:${"ab".repeat(32)}` }] });
    const ready = await get(`${setup.adminUrl}/readyz`);
    assert.deepEqual([ready["ready"], ready["reasons"]], [true, []]);
    assert.equal((await fetch(`${setup.url}/readyz`)).status, 200, "also for a client without a key");
    const status = await get(`${setup.adminUrl}/status`);
    assert.equal((status["replicas"] as Json[]).length, 1);
    const metrics = await (await fetch(`${setup.adminUrl}/metrics`)).text();
    assert.match(metrics, /^kvasir_replica_routable\{replica="127\.0\.0\.1:\d+"\} 1$/m);
    assert.ok(!(await (await fetch(`${setup.adminUrl}/config`)).text()).includes("abab"));
    await setup.engines[0]!.faults.set({ refuse: true });
    await until("it is not ready", async () => (await fetch(`${setup.adminUrl}/readyz`)).status === 503);
    assert.deepEqual((await get(`${setup.adminUrl}/readyz`))["reasons"], ["no replica takes requests"]);
  });

  it("is not ready while no engine has a role that serves, and says which", async () => {
    await using setup = await setUp([{}]);
    const [engine] = setup.engines;
    await setup.router.reload(configFrom({ engines: [{ url: engine!.url, role: "draft" }], admin: { port: 0 } }));
    await until("it is not ready", async () => (await fetch(`${setup.adminUrl}/readyz`)).status === 503);
    const { reasons } = await get(`${setup.adminUrl}/readyz`);
    assert.deepEqual(reasons, [`no replica has a role that serves by itself: ${MODEL} (draft)`]);
    assert.ok(setup.logged.some(({ msg }) => String(msg).startsWith("engines.0.role: draft: ")));
  });

  it("wants its token on every route but the probes", async () => {
    await using setup = await setUp([{}], { admin: { token: "admin-token-1" } });
    for (const path of ["/metrics", "/status", "/config", "/decisions", "/replicas"]) {
      assert.equal((await fetch(`${setup.adminUrl}${path}`)).status, 401, path);
    }
    const headers = { authorization: "Bearer admin-token-1" };
    assert.equal((await fetch(`${setup.adminUrl}/status`, { headers })).status, 200);
    assert.equal((await fetch(`${setup.adminUrl}/healthz`)).status, 200);
  });

  it("serves no file outside its list", async () => {
    await using setup = await setUp([]);
    for (const path of [
      "/package.json",
      "/..%2fpackage.json",
      "/../package.json",
      "/%2e%2e/package.json",
      "/status.js%00",
    ])
      assert.equal((await fetch(`${setup.adminUrl}${path}`)).status, 404, path);
  });
});

describe("TLS", () => {
  it("protects clients, operators and the way to engines", async () => {
    const folder = await mkdtemp(join(tmpdir(), "kvasir-tls-"));
    try {
      const { cert, private: privateKey } = await generate([{ name: "commonName", value: "localhost" }], {
        keySize: 2048,
        extensions: [{ name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] }],
      });
      const tls = { certFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") };
      await writeFile(tls.certFile, cert);
      await writeFile(tls.keyFile, privateKey);
      const script = (_request: unknown, response: { end(body: string): void }): void => response.end(`{"secret":1}`);
      await using engine = await startScriptedEngine(script, { cert, key: privateKey });
      await using inner = await setUp(
        [],
        { engines: [engine.url], engineTls: { caFile: tls.certFile }, listen: { tls }, admin: { tls } },
        1,
      );
      assert.match(inner.url, /^https:/);
      const dispatcher = new Agent({ connect: { ca: cert } });
      const models = await request(`${inner.url}/v1/models`, { dispatcher });
      assert.equal(models.statusCode, 200);
      await models.body.dump();
      const answer = await request(`${inner.url}/v1/completions`, {
        dispatcher,
        method: "POST",
        headers: { "content-type": "application/json" },
        body: `{"model":"${MODEL}","prompt":"x"}`,
      });
      assert.equal(await answer.body.text(), `{"secret":1}`);
      const status = await request(`${inner.adminUrl}/status`, { dispatcher });
      assert.equal(status.statusCode, 200);
      await status.body.dump();
      await dispatcher.close();
      await assert.rejects(fetch(`${inner.url}/v1/models`), "an unknown certificate");
      await assert.rejects(
        startRouter(configFrom({ listen: { port: 0, tls: { ...tls, keyFile: tls.certFile } } })),
        (error: unknown) => error instanceof ConfigError && error.message.includes("listen.tls"),
      );
      await assert.rejects(
        startRouter(configFrom({ admin: { port: 0, tls: { ...tls, certFile: join(folder, "none.pem") } } })),
        /admin\.tls\.certFile: .*none\.pem" cannot be read/,
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
