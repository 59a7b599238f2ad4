import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { describe, it } from "node:test";
import type { ConfigInput } from "#src/config/schema.ts";
import type { EmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { startEmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { configFrom } from "#src/config/loadConfig.ts";
import { startRouter, type RunningRouter } from "#src/gateway/router.ts";
import { chat, FAST, MODEL, setUp, until } from "./gatewaySetup.ts";

const ids = (from: number, count: number): number[] => Array.from({ length: count }, (_, at) => from + at);

interface Answer {
  readonly replica: string;
  readonly cachedTokens: number;
}

async function complete(
  url: string,
  prompt: readonly number[],
  more: object = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  const answer = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: MODEL, prompt, max_tokens: 4, ...more }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const { usage } = JSON.parse(text) as { usage: { prompt_tokens_details: { cached_tokens: number } } };
  return {
    replica: answer.headers.get("x-kvasir-replica") ?? "",
    cachedTokens: usage.prompt_tokens_details.cached_tokens,
  };
}

const nameOf = ({ url }: EmulatedEngine): string => new URL(url).host;

function engineInput({ url, kvEvents }: EmulatedEngine) {
  return { url, kvEvents: { endpoint: kvEvents!.events, replayEndpoint: kvEvents!.replay ?? undefined } };
}

const stateOf = ({ fleet }: RunningRouter, id: string): string => fleet.index.view(fleet.byId(id)!.index).state.state;

async function readyz(url: string): Promise<{ status: number; reasons: string[] }> {
  const answer = await fetch(`${url}/readyz`);
  return { status: answer.status, ...((await answer.json()) as { reasons: string[] }) };
}

describe("what engines tell of their KV blocks", () => {
  it("is known to a router that starts after them, when it says that it is ready", async () => {
    const engines = await Promise.all([1, 2].map(() => startEmulatedEngine({ ...FAST, kvEvents: {} })));
    const [first, second] = engines as [EmulatedEngine, EmulatedEngine];
    const input: ConfigInput = {
      engines: engines.map(engineInput),
      listen: { host: "127.0.0.1", port: 0 },
      admin: { enabled: false },
      log: { level: "silent" },
    };
    try {
      for (let at = 0; at < 20; at++) await complete(at % 2 === 0 ? first.url : second.url, ids(10_000 * at, 320));
      const router = await startRouter(configFrom(input));
      try {
        await until("it is ready", async () => (await readyz(router.url)).status === 200);
        assert.deepEqual([stateOf(router, nameOf(first)), stateOf(router, nameOf(second))], ["live", "live"]);
        await until("both take requests", () => router.fleet.replicas().every(({ health }) => health.routable(0)));
        for (let at = 0; at < 20; at++) {
          const { replica, cachedTokens } = await complete(router.url, ids(10_000 * at, 321));
          assert.equal(replica, nameOf(at % 2 === 0 ? first : second));
          assert.equal(cachedTokens, 320);
          const [decision] = router.decisions.recent(1);
          assert.equal(decision!.cachedTokens(decision!.chosen), 320);
        }
      } finally {
        await router.stop();
      }
    } finally {
      await Promise.all(engines.map((engine) => engine.stop()));
    }
  });

  it("is told anew where it was kept in larger blocks than the pool turned out to have", async () => {
    const sizes = [64, 16, 32];
    const engines = await Promise.all(
      sizes.map((blockTokens) => startEmulatedEngine({ ...FAST, blockTokens, kvEvents: {} })),
    );
    try {
      for (const [at, { url }] of engines.entries()) await complete(url, ids(10_000 * at, 320));
      await using setup = await setUp([], { engines: [engineInput(engines[0]!)] }, 1);
      await until("the first is known", () => stateOf(setup.router, nameOf(engines[0]!)) === "live");
      assert.equal(setup.router.fleet.blockTokens(MODEL), 64);
      const all: ConfigInput = { engines: engines.map(engineInput), listen: { port: 0 }, admin: { port: 0 } };
      await setup.router.reload(configFrom(all));
      await until("all are known, in the smallest blocks", () =>
        engines.every((engine) => {
          const { index, id } = setup.router.fleet.byId(nameOf(engine))!;
          return stateOf(setup.router, id) === "live" && setup.router.fleet.index.view(index).ownBlockTokens === 16;
        }),
      );
      await until("all take requests", () => setup.router.fleet.replicas().every(({ health }) => health.routable(0)));
      for (const [at, engine] of engines.entries()) {
        const { replica, cachedTokens } = await complete(setup.url, ids(10_000 * at, 321));
        assert.equal(replica, nameOf(engine));
        assert.equal(cachedTokens, 320);
        const [decision] = setup.router.decisions.recent(1);
        assert.equal(decision!.cachedTokens(decision!.chosen), 320);
      }
    } finally {
      await Promise.all(engines.map((engine) => engine.stop()));
    }
  });

  it("reaches ranks that become known only after their stream has begun", async () => {
    const engine = await startEmulatedEngine({ ...FAST, dataParallelRanks: 2, kvEvents: {} });
    try {
      for (const rank of [0, 1])
        await complete(engine.url, ids(10_000 * rank, 320), {}, { "x-data-parallel-rank": `${rank}` });
      await using setup = await setUp([], { engines: [engineInput(engine)] }, 1);
      const views = () => setup.router.fleet.replicas().map(({ index }) => setup.router.fleet.index.view(index));
      await until("both ranks' views are live, with what is there", () => {
        const known = views();
        return known.length === 2 && known.every(({ state, holders }) => state.state === "live" && holders === 20);
      });
    } finally {
      await engine.stop();
    }
  });

  it("is not waited for longer than configured, and the wait is seen", async () => {
    // Accepts connections and says nothing.
    const mute = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(mute, "listening");
    const { port } = mute.address() as AddressInfo;
    const engine = await startEmulatedEngine(FAST);
    const logged: Record<string, unknown>[] = [];
    try {
      const endpoint = `tcp://127.0.0.1:${port}`;
      await using setup = await setUp([], {
        engines: [{ url: engine.url, kvEvents: { endpoint, replayEndpoint: endpoint } }],
        limits: { warmStartMs: 1500 },
      });
      await until("it takes requests", async () => (await chat(setup.url, {})).status === 200);
      const { status, reasons } = await readyz(setup.url);
      assert.equal(status, 503);
      assert.match(reasons.join(), /learning what 1 of 1 replicas have cached/);
      await until("its time is up", async () => (await readyz(setup.url)).status === 200);
      logged.push(...setup.logged);
      assert.ok(logged.some(({ msg }) => String(msg).startsWith("not all that the engines hold is known")));
    } finally {
      mute.close();
      await engine.stop();
    }
  });

  it("is not waited for where there is none", async () => {
    await using setup = await setUp([{}, {}], { limits: { warmStartMs: 3_600_000 } });
    await until("it is ready", async () => (await readyz(setup.url)).status === 200);
    const metrics = await (await fetch(`${setup.adminUrl}/metrics`)).text();
    assert.match(metrics, /kvasir_replica_view_state\{replica="[^"]+",state="absent"\} 1/);
  });

  it("leaves requests that are known by their text to own traffic's traces", async () => {
    await using setup = await setUp([{ kvEvents: {} }, { kvEvents: {} }, {}]);
    await until("views are live", () =>
      setup.engines.slice(0, 2).every((engine) => stateOf(setup.router, nameOf(engine)) === "live"),
    );
    const seen = new Map<number, string>();
    for (let round = 0; round < 3; round++) {
      for (let at = 0; at < 6; at++) {
        const content = `conversation ${at}: ${"a long prefix that is worth something ".repeat(100)}`;
        const answer = await chat(setup.url, { messages: [{ role: "user", content }], max_tokens: 2 });
        const replica = answer.headers.get("x-kvasir-replica") ?? "";
        assert.equal(replica, seen.get(at) ?? replica);
        seen.set(at, replica);
        await answer.text();
      }
    }
    assert.ok(new Set(seen.values()).size > 1, "they are spread");
  });

  it("is void when an engine restarts, and true again afterwards", async () => {
    await using setup = await setUp([{ kvEvents: {} }]);
    const [engine] = setup.engines as [EmulatedEngine];
    const id = nameOf(engine);
    await until("the view is live", () => stateOf(setup.router, id) === "live");
    await complete(setup.url, ids(0, 641));
    assert.equal((await complete(setup.url, ids(0, 641))).cachedTokens, 640);
    await until("its counters were seen", () => setup.router.fleet.byId(id)!.metrics?.value.promptTokensTotal);
    const { incarnation } = setup.router.fleet.byId(id)!;
    await engine.restart(50);
    await until("the restart was seen", () => setup.router.fleet.byId(id)!.incarnation !== incarnation);
    await until("it takes requests", () => setup.router.fleet.byId(id)!.health.routable(performance.now()));
    await until("the view is live again", () => stateOf(setup.router, id) === "live");
    await complete(setup.url, ids(0, 641));
    const [cold] = setup.router.decisions.recent(1);
    assert.equal(cold!.cachedTokens(cold!.chosen), 0);
    await until("its new blocks are known", async () => {
      await complete(setup.url, ids(0, 641));
      const [warm] = setup.router.decisions.recent(1);
      return warm!.cachedTokens(warm!.chosen) === 640;
    });
    const metrics = await (await fetch(`${setup.adminUrl}/metrics`)).text();
    assert.match(metrics, new RegExp(`kvasir_kv_events_restarts_total\\{replica="${id}"\\} 1`));
  });
});
