import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configFrom } from "#src/config/loadConfig.ts";
import { startRouter } from "#src/gateway/router.ts";
import { chat, MODEL, routable, setUp, until } from "./gatewaySetup.ts";

function post(url: string, body: object): Promise<Response> {
  return fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

describe("a fleet that changes", () => {
  it("spreads eight requests that come at once, between two scrapes", async () => {
    await using setup = await setUp([{}, {}, {}, {}]);
    // Engines that don't answer: on a slow machine, too, all eight are there at once.
    for (const engine of setup.engines) await engine.faults.set({ hang: "requests" });
    const answers = Array.from({ length: 8 }, (_, at) =>
      chat(setup.url, { messages: [{ role: "user", content: `${at}` }] }),
    );
    await until("all are placed", () => setup.router.scheduler.inFlight === 8);
    assert.deepEqual(
      setup.router.fleet.replicas().map(({ load }) => load.requests),
      [2, 2, 2, 2],
    );
    for (const engine of setup.engines) await engine.faults.clear();
    for (const engine of setup.engines) await engine.restart();
    await Promise.allSettled(answers);
  });

  it("sends a request elsewhere whose replica is removed before its first byte", async () => {
    await using setup = await setUp([{}, {}]);
    const [first, second] = setup.engines;
    await second!.faults.set({ refuse: true });
    await until("only the first takes requests", () => routable(setup.router) === 1);
    await first!.faults.set({ hang: "requests" });
    const asked = chat(setup.url, {});
    await until("it is placed", () => setup.router.scheduler.inFlight === 1);
    await second!.faults.clear();
    await until("the second is back", () => routable(setup.router) === 2);
    await setup.router.reload(configFrom({ engines: [second!.url], listen: { port: 0 }, admin: { port: 0 } }));
    const answer = await asked;
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("x-kvasir-replica"), new URL(second!.url).host);
    const metrics = await (await fetch(`${setup.adminUrl}/metrics`)).text();
    assert.ok(!metrics.includes(`replica="${new URL(first!.url).host}"`), "series of the removed one are gone");
  });

  it("forgets what a restarted engine had cached, and takes it back into use", async () => {
    await using setup = await setUp([{}]);
    const long = { messages: [{ role: "user", content: "a long prefix ".repeat(500) }] };
    for (let at = 0; at < 2; at++) await (await chat(setup.url, long)).text();
    const warm = setup.router.decisions.recent(1)[0]!;
    assert.ok(warm.cachedTokens(warm.chosen) > 500);
    const [replica] = setup.router.fleet.replicas();
    const { incarnation } = replica!;
    await until("its counters were seen", () => replica!.metrics?.value.promptTokensTotal);
    await setup.engines[0]!.restart(50);
    await until("the restart was seen", () => setup.router.fleet.replicas()[0]!.incarnation !== incarnation);
    await until("it takes requests again", () => routable(setup.router) === 1);
    assert.equal((await chat(setup.url, long)).status, 200);
    const cold = setup.router.decisions.recent(1)[0]!;
    assert.equal(cold.cachedTokens(cold.chosen), 0);
  });

  it("tells those that wait to come back when the router leaves, and lets the others finish", async () => {
    await using setup = await setUp([{ maxRunning: 1, maxQueued: 1, timeScale: 1 }]);
    const running = await chat(setup.url, { stream: true, max_tokens: 60 });
    const next = chat(setup.url, {});
    await until("one waits in the engine", () => setup.engines[0]!.stats().waiting === 1);
    const waiting = chat(setup.url, {});
    await until("one waits in the router", () => setup.router.scheduler.depth.requests === 1);
    const drained = setup.router.drain();
    const refused = await waiting;
    assert.equal(refused.status, 503);
    assert.equal(refused.headers.get("x-should-retry"), "true");
    assert.ok(Number(refused.headers.get("retry-after")) >= 1);
    assert.match(await running.text(), /data: \[DONE\]\n\n$/);
    assert.equal((await next).status, 200);
    await drained;
  });

  it("keeps its replicas when a source of them fails, and says so", async () => {
    await using setup = await setUp([{}], { discovery: { files: [{ path: "/nowhere/engines.yaml" }] } });
    const { conditions } = (await (await fetch(`${setup.adminUrl}/readyz`)).json()) as {
      conditions: { condition: string; message: string }[];
    };
    assert.match(conditions.find(({ condition }) => condition === "source_failed")?.message ?? "", /nowhere/);
    assert.equal((await chat(setup.url, {})).status, 200);
  });
});

describe("a policy per model", () => {
  it("keeps a session together, and a round-robin goes round", async () => {
    await using setup = await setUp([{}, {}, {}], {
      policy: "round-robin",
      models: { [MODEL]: { policy: "session" } },
    });
    const replicaOf = async (headers: Record<string, string>): Promise<string> =>
      (await chat(setup.url, {}, headers)).headers.get("x-kvasir-replica") ?? "";
    const first = await replicaOf({ "x-session-id": "one" });
    for (let at = 0; at < 4; at++) assert.equal(await replicaOf({ "x-session-id": "one" }), first);
    await setup.router.reload(
      configFrom({
        engines: setup.engines.map(({ url }) => url),
        listen: { port: 0 },
        admin: { port: 0 },
        policy: "round-robin",
      }),
    );
    const seen = new Set<string>();
    for (let at = 0; at < 3; at++) seen.add(await replicaOf({ "x-session-id": "one" }));
    assert.equal(seen.size, 3);
  });
});

describe("a start that cannot be", () => {
  it("is refused, and leaves nothing behind", async () => {
    await using setup = await setUp([{}]);
    const { port } = new URL(setup.url);
    const taken = configFrom({ listen: { host: "127.0.0.1", port: Number(port) }, admin: { enabled: false } });
    await assert.rejects(startRouter(taken), {
      name: "ListenError",
      message: /^Port \d+ on 127\.0\.0\.1, for clients, is taken\./,
    });
  });

  it("needs no admin listener and takes IPv6", async () => {
    const router = await startRouter(
      configFrom({ listen: { host: "::1", port: 0 }, admin: { enabled: false }, log: { level: "silent" } }),
    );
    assert.equal(router.adminUrl, null);
    assert.match(router.url, /^http:\/\/\[::1\]:\d+$/);
    assert.equal((await fetch(`${router.url}/readyz`)).status, 503);
    const early = await post(`${router.url}/v1/completions`, { model: MODEL, prompt: "x" });
    assert.equal(early.status, 503);
    await router.stop();
  });
});
