import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "#src/determinism/clock.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import { ManualTimers } from "#src/determinism/timers.ts";
import { parseEndpoint } from "#src/discovery/parseEndpoint.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { AskEngine, EngineProfile } from "#src/engines/engineAdapter.ts";
import type { KvEventListener } from "#src/engines/events/kvEventListener.ts";
import { KvEventMonitor } from "#src/engines/events/kvEventMonitor.ts";
import { always, refuses } from "../recordedEngine.ts";
import { FakeSockets } from "./fakeSockets.ts";

const CONFIGURED = { endpoint: "tcp://*:5557", replayEndpoint: "tcp://*:6557", topic: "" };

const PROFILE: EngineProfile = {
  kind: "vllm",
  version: null,
  dataParallelRanks: 1,
  models: [],
  maxRunningRequests: null,
  kvCapacityTokens: null,
  kvBlockTokens: null,
};

const endpoint = (name: string, more: object = {}): EngineEndpoint =>
  parseEndpoint({ ...more, name, url: `http://${name}.test` });

/** Answers as an SGLang that publishes on this port. */
function sglang(port: number, ranks = 1): AskEngine {
  const events = { publisher: "zmq", endpoint_host: "*", endpoint_port_base: port, topic: "", dp_size: ranks };
  return always(200, JSON.stringify({ tp_size: 1, kv_events: events }));
}

function setUp(engines: Record<string, AskEngine> = {}) {
  const clock = new ManualClock();
  const timers = new ManualTimers(clock);
  const sockets = new FakeSockets();
  const told: string[] = [];
  const note = (event: string) => (engine: EngineEndpoint, rank: number) =>
    void told.push(`${event} ${engine.name} ${rank}`);
  const listener: KvEventListener = {
    batch: note("batch"),
    lost: note("lost"),
    restarted: note("restarted"),
    progress: note("progress"),
    live: note("live"),
    failed: note("failed"),
  };
  const closed: string[] = [];
  const asked: string[] = [];
  const monitor = new KvEventMonitor({
    listener,
    clock,
    timers,
    random: new SeededRandom(1),
    sockets,
    open: ({ name }) => ({
      ask: (path, options) => {
        asked.push(`${options?.method ?? "GET"} ${name} ${path}`);
        return (engines[name] ?? refuses)(path, options);
      },
      close: () => Promise.resolve(void closed.push(name)),
    }),
  });
  const opened = () => sockets.subscriptions.filter(({ closed }) => !closed).map(({ address }) => address.events);
  return { timers, sockets, told, monitor, engines, asked, closed, opened };
}

describe("the KV event monitor", () => {
  it("follows each rank of a configured endpoint on its own port, without asking the engine", async () => {
    const { timers, monitor, asked, opened, sockets } = setUp();
    monitor.setEndpoints([endpoint("a", { kvEvents: CONFIGURED, dataParallelRanks: 3 })]);
    await timers.advance(1);
    assert.deepEqual(opened(), ["tcp://a.test:5557", "tcp://a.test:5558", "tcp://a.test:5559"]);
    assert.deepEqual(asked, []);
    sockets.subscription.events.connected();
    assert.equal(sockets.question.address, "tcp://a.test:6559");
    assert.deepEqual(
      monitor.status().map(({ rank, status }) => [rank, status.phase]),
      [
        [0, "connecting"],
        [1, "connecting"],
        [2, "replaying"],
      ],
    );
    await monitor.stop();
    assert.deepEqual(opened(), []);
    assert.equal(timers.pending, 0);
  });

  it("adds ranks when the engine is identified, and leaves the others alone", async () => {
    const { timers, monitor, opened, sockets } = setUp();
    const a = endpoint("a", { kvEvents: CONFIGURED });
    monitor.setEndpoints([a]);
    monitor.identified(a, { ...PROFILE, dataParallelRanks: 2 });
    await timers.advance(1);
    assert.deepEqual(opened(), ["tcp://a.test:5557", "tcp://a.test:5558"]);
    assert.equal(sockets.subscriptions.length, 2);
    monitor.identified(endpoint("stranger"), PROFILE);
    await monitor.stop();
  });

  it("asks the engine where nothing is configured, and keeps asking until it tells", async () => {
    const { timers, monitor, engines, opened, told } = setUp();
    monitor.setEndpoints([endpoint("a")]);
    await timers.advance(60_000);
    assert.deepEqual(opened(), []);
    assert.deepEqual(told, ["failed a 0"], "told once");
    engines["a"] = always(200, "{}");
    await timers.advance(60_000);
    assert.deepEqual(told, ["failed a 0", "failed a 0"], "another reason");
    engines["a"] = sglang(7000, 2);
    await timers.advance(31_000);
    assert.deepEqual(opened(), ["tcp://a.test:7000", "tcp://a.test:7001"]);
    await monitor.stop();
    assert.equal(timers.pending, 0);
  });

  it("asks again when the engine is identified anew, and follows it to another port", async () => {
    const { timers, monitor, engines, opened } = setUp({ a: sglang(7000) });
    const a = endpoint("a");
    monitor.setEndpoints([a]);
    await timers.advance(1);
    assert.deepEqual(opened(), ["tcp://a.test:7000"]);
    monitor.identified(a, PROFILE);
    await timers.advance(1);
    assert.deepEqual(opened(), ["tcp://a.test:7000"]);
    engines["a"] = sglang(8000);
    monitor.identified(a, PROFILE);
    await timers.advance(1);
    assert.deepEqual(opened(), ["tcp://a.test:8000"]);
    await monitor.stop();
  });

  it("tells that all is void where other streams take the place of those that told it, or none", async () => {
    const { timers, monitor, engines, told, sockets } = setUp({ b: sglang(7000) });
    const a = { kvEvents: CONFIGURED };
    const live = async (): Promise<void> => {
      await timers.advance(1);
      sockets.subscription.events.connected();
      sockets.endReplay();
      await timers.advance(1);
    };
    monitor.setEndpoints([endpoint("a", a)]);
    await live();
    monitor.setEndpoints([endpoint("a", { ...a, labels: { rack: "2" } })]);
    assert.deepEqual(told.slice(-2), ["live a 0", "lost a 0"]);
    await live();
    monitor.setEndpoints([endpoint("a", { kvEvents: null })]);
    assert.deepEqual(told.slice(-3), ["live a 0", "lost a 0", "failed a 0"]);
    monitor.setEndpoints([]);
    assert.deepEqual(told.slice(-1), ["failed a 0"], "nobody is left to whom it could matter");

    const b = endpoint("b");
    monitor.setEndpoints([b]);
    await live();
    engines["b"] = sglang(8000);
    monitor.identified(b, PROFILE);
    await timers.advance(1);
    assert.deepEqual(told.slice(-2), ["live b 0", "lost b 0"]);
    await monitor.stop();
  });

  it("starts over when the engine is known to be another process", async () => {
    const { timers, monitor, sockets, told, opened } = setUp();
    const a = endpoint("a", { kvEvents: CONFIGURED });
    monitor.setEndpoints([a]);
    sockets.subscription.events.connected();
    sockets.endReplay();
    await timers.advance(1);
    monitor.restarted(a);
    monitor.restarted(endpoint("stranger"));
    assert.deepEqual(told.slice(-1), ["lost a 0"]);
    assert.equal(sockets.subscriptions.length, 2);
    assert.deepEqual(opened(), ["tcp://a.test:5557"]);
    await monitor.stop();
  });

  it("has nothing to do with an endpoint that publishes none", async () => {
    const { timers, monitor, asked, opened } = setUp({ a: sglang(7000) });
    const a = endpoint("a", { kvEvents: null });
    monitor.setEndpoints([a]);
    monitor.identified(a, PROFILE);
    await timers.advance(60_000);
    assert.deepEqual([asked, opened()], [[], []]);
    await monitor.stop();
  });

  it("binds no address that was not configured", async () => {
    const settings = { enable_kv_cache_events: true, publisher: "zmq", endpoint: "tcp://10.0.0.1:5557" };
    const { timers, monitor, opened, told } = setUp({
      a: always(200, JSON.stringify({ vllm_config: { kv_events_config: settings } })),
    });
    monitor.setEndpoints([endpoint("a")]);
    await timers.advance(10_000);
    assert.deepEqual(opened(), []);
    assert.deepEqual(told, ["failed a 0"]);
    await monitor.stop();
  });

  it("pulls only from an engine that was identified", async () => {
    const { timers, monitor, asked, told } = setUp({ a: always(200, "[]") });
    const a = endpoint("a", { kvEvents: { endpoint: "pull" } });
    monitor.setEndpoints([a]);
    await timers.advance(1000);
    assert.deepEqual(asked, []);
    monitor.identified(a, { ...PROFILE, kind: "trtllm" });
    await timers.advance(1);
    assert.deepEqual(asked, ["POST a /kv_cache_events"]);
    assert.deepEqual(told, []);
    await monitor.stop();
  });

  it("leaves endpoints alone that stay, and hears no more of those that leave", async () => {
    const { timers, monitor, opened, closed, sockets } = setUp();
    const [a, b] = [endpoint("a", { kvEvents: CONFIGURED }), endpoint("b", { kvEvents: CONFIGURED })];
    monitor.setEndpoints([a, b]);
    await timers.advance(1);
    monitor.setEndpoints([endpoint("b", { kvEvents: CONFIGURED }), endpoint("c", { kvEvents: CONFIGURED })]);
    await timers.advance(1);
    assert.deepEqual(opened(), ["tcp://b.test:5557", "tcp://c.test:5557"]);
    assert.equal(sockets.subscriptions.length, 3);
    assert.deepEqual(closed, ["a"]);
    await monitor.stop();
  });
});
