import assert from "node:assert/strict";
import { createServer as createTlsServer } from "node:https";
import { once } from "node:events";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { generate } from "selfsigned";
import { processClock } from "#src/determinism/clock.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import { processTimers } from "#src/determinism/timers.ts";
import { parseEndpoint } from "#src/discovery/parseEndpoint.ts";
import { startEmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { createAskEngine, type EngineClient } from "#src/engines/engineClient.ts";
import { EngineMonitor } from "#src/engines/engineMonitor.ts";
import { RouterError } from "#src/errors/routerError.ts";
import { MonitorLog } from "../unit/engines/monitorLog.ts";
import { recordedEngine } from "../unit/engines/recordedEngine.ts";
import { recordedAnswers, serve, shut } from "./recordedServer.ts";

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    if (condition()) return;
    await sleep(10);
  }
  assert.fail(`never: ${what}`);
}

async function failureOf(client: EngineClient, path = "/metrics", timeoutMs = 300): Promise<RouterError> {
  try {
    await client.ask(path, { timeoutMs });
  } catch (caught) {
    assert.ok(caught instanceof RouterError);
    assert.equal(caught.fault, "engine");
    return caught;
  }
  throw new assert.AssertionError({ message: "answered" });
}

describe("asking an engine", () => {
  it("reads its answer, under a path prefix and over IPv6, with the engine's key and nothing else of ours", async (t) => {
    const seen: string[][] = [];
    const { url } = await serve(
      t,
      (request, response) => {
        seen.push([request.url ?? "", ...Object.keys(request.headers).sort(), request.headers.authorization ?? ""]);
        response.writeHead(200, { "x-one": "1" }).end("höh");
      },
      "::1",
    );
    const client = createAskEngine({ url: `${url}/prefix`, apiKey: "engine-key" });
    t.after(() => client.close());
    const answer = await client.ask("/v1/models");
    assert.deepEqual([answer.status, answer.body, answer.headers["x-one"]], [200, "höh", "1"]);
    assert.deepEqual(seen, [
      ["/prefix/v1/models", "accept", "authorization", "connection", "host", "Bearer engine-key"],
    ]);
  });

  it("keeps its connections, and asks anew when the engine closed it meanwhile", async (t) => {
    const { url, server, connections } = await serve(t, (_, response) => response.end("ok"));
    const client = createAskEngine({ url, apiKey: null });
    t.after(() => client.close());
    for (let times = 0; times < 40; times++) await client.ask("/health");
    const before = connections();
    assert.ok(before <= 4, `${before} connections`);
    server.closeIdleConnections();
    assert.equal((await client.ask("/health")).status, 200);
    assert.ok(connections() > before);
  });

  it("tells nobody there from nobody answering", async (t) => {
    const { url, server } = await serve(t, () => {});
    const client = createAskEngine({ url, apiKey: null });
    t.after(() => client.close());
    assert.equal((await failureOf(client)).code, "engine_stalled");
    shut(server);
    await once(server, "close");
    assert.equal((await failureOf(client)).code, "engine_unreachable");
    const nameless = createAskEngine({ url: "http://no-such-engine.invalid:8000", apiKey: null });
    t.after(() => nameless.close());
    assert.equal((await failureOf(nameless, "/metrics", 4000)).code, "engine_unreachable");
  });

  it("gives up an answer that trickles for ever, or that is larger than it may be", async (t) => {
    const { url } = await serve(t, (request, response) => {
      if (request.url === "/large") response.end("x".repeat(200_000));
      const trickle = setInterval(() => response.write("x"), 5);
      response.on("close", () => clearInterval(trickle));
    });
    const client = createAskEngine({ url, apiKey: null, maxBytes: 100_000 });
    t.after(() => client.close());
    assert.equal((await failureOf(client, "/trickle")).code, "engine_stalled");
    const large = await failureOf(client, "/large", 5000);
    assert.equal(large.code, "engine_failed");
    assert.match(large.message, /\/large is larger than 100000 bytes/);
  });

  it("reports garbage in place of HTTP as unreachable, not as a crash", async (t) => {
    const server = createTcpServer((socket) => socket.on("error", () => {}).end("SSH-2.0-OpenSSH_9.6\r\n"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => server.close());
    const client = createAskEngine({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, apiKey: null });
    t.after(() => client.close());
    assert.equal((await failureOf(client)).code, "engine_unreachable");
  });

  it("trusts a TLS engine only by the authority that is given", async (t) => {
    const pem = await generate([{ name: "commonName", value: "localhost" }], {
      extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
    });
    const server = createTlsServer({ key: pem.private, cert: pem.cert }, (_, response) => response.end("ok"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => shut(server));
    const url = `https://localhost:${(server.address() as AddressInfo).port}`;
    const wary = createAskEngine({ url, apiKey: null });
    const trusting = createAskEngine({ url, apiKey: null, tls: { ca: pem.cert } });
    t.after(() => Promise.all([wary.close(), trusting.close()]));
    assert.equal((await failureOf(wary, "/health", 4000)).code, "engine_unreachable");
    assert.equal((await trusting.ask("/health")).status, 200);
  });
});

function watch(urls: Record<string, string>) {
  const log = new MonitorLog();
  const monitor = new EngineMonitor({
    listener: log,
    clock: processClock,
    timers: processTimers,
    random: new SeededRandom(3),
    settings: {
      healthEveryMs: 20,
      scrapeEveryMs: 20,
      modelsEveryMs: 50,
      askLimitMs: 400,
      probeFirstDelayMs: 10,
      probeMaxDelayMs: 50,
    },
  });
  monitor.setEndpoints(Object.entries(urls).map(([name, url]) => parseEndpoint({ name, url })));
  return { log, monitor };
}

describe("the engine monitor over HTTP", () => {
  it("identifies all four kinds of engine", async (t) => {
    const engines = {
      vllm: recordedEngine("vllm-0.32.0"),
      sglang: recordedEngine("sglang"),
      trtllm: recordedEngine("trtllm", "/prometheus/metrics"),
      llamacpp: recordedEngine("llamacpp"),
    };
    const urls: Record<string, string> = {};
    for (const [kind, engine] of Object.entries(engines)) urls[kind] = (await serve(t, recordedAnswers(engine))).url;
    const { log, monitor } = watch(urls);
    t.after(() => monitor.stop());
    for (const kind of Object.keys(engines)) {
      await until(() => log.healths.get(kind) === "ready" && log.count("metrics", kind) > 2, `${kind} watched`);
      assert.equal(log.profiles.get(kind)?.kind, kind);
      assert.deepEqual(log.scrapes.get(kind)?.missing, []);
    }
  });

  it("hears of all others while one accepts and never answers, and one never ends its answer", async (t) => {
    const stuck = await serve(t, () => {});
    const trickling = await serve(t, (_, response) => {
      const trickle = setInterval(() => response.write(" "), 5);
      response.on("close", () => clearInterval(trickle));
    });
    const urls: Record<string, string> = { stuck: stuck.url, trickling: trickling.url };
    for (let i = 0; i < 4; i++) urls[`e${i}`] = (await serve(t, recordedAnswers(recordedEngine("vllm-0.32.0")))).url;
    const { log, monitor } = watch(urls);
    t.after(() => monitor.stop());
    await until(
      () => log.healths.get("stuck") === "silent" && log.healths.get("trickling") === "silent",
      "both silent",
    );
    for (let i = 0; i < 4; i++) await until(() => log.count("metrics", `e${i}`) >= 3, `e${i}`);
    await until(() => stuck.connections() > 0, "asked");
    assert.equal(log.count("identified", "stuck"), 0);
  });

  it("goes on with metrics while /health hangs", async (t) => {
    const answers = recordedAnswers(recordedEngine("vllm-0.32.0"));
    let hanging = false;
    const { url } = await serve(t, (request, response) => {
      if (!(hanging && request.url === "/health")) answers(request, response);
    });
    const { log, monitor } = watch({ a: url });
    t.after(() => monitor.stop());
    await until(() => log.healths.get("a") === "ready", "ready");
    hanging = true;
    await until(() => log.healths.get("a") === "silent", "silent");
    const before = log.count("metrics", "a");
    await until(() => log.count("metrics", "a") > before + 5, "metrics go on");
    assert.equal(log.count("unreachable", "a"), 0);
    hanging = false;
    await until(() => log.healths.get("a") === "ready", "ready again");
  });

  it("sees an engine die and another process take its port", async (t) => {
    const first = recordedEngine("vllm-0.32.0");
    const live = await serve(t, recordedAnswers(first));
    const { log, monitor } = watch({ a: live.url });
    t.after(() => monitor.stop());
    await until(() => log.count("metrics", "a") > 1, "watched");
    shut(live.server);
    await until(() => log.healths.get("a") === "unreachable", "death seen");
    assert.equal(log.count("restarted", "a"), 0, "nobody came back yet");
    const second = recordedEngine("vllm-0.32.0");
    second.set("/metrics", {
      body: first.body("/metrics").replace(/^(process_start_time_seconds) .*$/m, "$1 1.7960099e+09"),
    });
    await serve(t, recordedAnswers(second), "127.0.0.1", live.port);
    await until(() => log.healths.get("a") === "ready", "return seen");
    assert.equal(log.count("restarted", "a"), 1);
    assert.equal(log.count("identified", "a"), 2);
  });

  it("takes an emulated engine for the vLLM that it plays, ranks, adapters, faults and all", async (t) => {
    const engine = await startEmulatedEngine({
      model: "m",
      adapters: ["sql"],
      dataParallelRanks: 2,
      blockTokens: 32,
      prefixCaching: false,
    });
    t.after(() => engine.stop());
    const { log, monitor } = watch({ a: engine.url });
    t.after(() => monitor.stop());
    await until(() => log.healths.get("a") === "ready" && log.count("models", "a") > 0, "watched");
    const profile = log.profiles.get("a");
    assert.deepEqual([profile?.kind, profile?.dataParallelRanks, profile?.kvBlockTokens], ["vllm", 2, 32]);
    assert.equal(profile?.prefixCachingEnabled, false);
    assert.deepEqual(
      log.modelLists.get("a")?.map(({ id, parent }) => [id, parent]),
      [
        ["m", null],
        ["sql", "m"],
      ],
    );
    assert.deepEqual([...(log.scrapes.get("a")?.byRank.keys() ?? [])], [0, 1]);
    assert.deepEqual(log.scrapes.get("a")?.missing, []);
    await engine.faults.set({ missingMetrics: ["vllm:kv_cache_usage_perc"] });
    await until(() => log.missingFacts.get("a")?.[0]?.fact === "kvUsage", "loud");
    await engine.faults.clear();
    await until(() => log.missingFacts.get("a")?.length === 0, "quiet again");
  });
});
