import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseEndpoint } from "#src/discovery/parseEndpoint.ts";
import type { AskEngine } from "#src/engines/engineAdapter.ts";
import { askForAdvertisedEvents } from "#src/engines/events/advertisedEvents.ts";
import { configuredAddress, endpointsOf } from "#src/engines/events/eventAddresses.ts";
import { RouterError } from "#src/errors/routerError.ts";
import { always, recordedEngine, refuses } from "../recordedEngine.ts";

describe("where an engine's events are, by configuration", () => {
  it("is the address given, on the port of the rank", () => {
    const given = { endpoint: "tcp://10.0.0.9:5557", replayEndpoint: "tcp://10.0.0.9:6557", topic: "kv" };
    assert.deepEqual(configuredAddress(given, "http://10.0.0.1:8000", 0), {
      events: "tcp://10.0.0.9:5557",
      replay: "tcp://10.0.0.9:6557",
      topic: "kv",
      bind: false,
    });
    assert.deepEqual(configuredAddress(given, "http://10.0.0.1:8000", 3), {
      events: "tcp://10.0.0.9:5560",
      replay: "tcp://10.0.0.9:6560",
      topic: "kv",
      bind: false,
    });
  });

  it("has the engine's own host for a wildcard", () => {
    for (const wildcard of ["*", "0.0.0.0", "[::]"]) {
      const given = { endpoint: `tcp://${wildcard}:5557`, replayEndpoint: null, topic: "" };
      assert.equal(configuredAddress(given, "http://gpu-1.local:8000/v", 0)?.events, "tcp://gpu-1.local:5557");
      assert.equal(configuredAddress(given, "https://[fd00::1]:8000", 1)?.events, "tcp://[fd00::1]:5558");
    }
  });

  it("leaves a wildcard to bind as it is, but not that of the replay, which the engine binds", () => {
    const given = { endpoint: "tcp://*:5557", replayEndpoint: "tcp://*:5558", topic: "", bind: true };
    assert.deepEqual(configuredAddress(given, "http://10.0.0.1:8000", 0), {
      events: "tcp://*:5557",
      replay: "tcp://10.0.0.1:5558",
      topic: "",
      bind: true,
    });
  });

  it("is nowhere past the last port, and for the second rank of a path", () => {
    const last = { endpoint: "tcp://*:65535", replayEndpoint: null, topic: "" };
    assert.notEqual(configuredAddress(last, "http://a", 0), null);
    assert.equal(configuredAddress(last, "http://a", 1), null);
    const path = { endpoint: "ipc:///run/kv", replayEndpoint: null, topic: "" };
    assert.equal(configuredAddress(path, "http://a", 0)?.events, "ipc:///run/kv");
    assert.equal(configuredAddress(path, "http://a", 1), null);
    const replay = { endpoint: "tcp://*:1000", replayEndpoint: "tcp://*:65535", topic: "" };
    assert.equal(configuredAddress(replay, "http://a", 1), null);
  });

  it("is read from an endpoint as people write it, with what is allowed", () => {
    const read = (kvEvents: unknown) => parseEndpoint({ url: "http://a:1", kvEvents }).kvEvents;
    assert.deepEqual(read({ endpoint: "tcp://*:5557" }), { endpoint: "tcp://*:5557", replayEndpoint: null, topic: "" });
    assert.deepEqual(read({ endpoint: "tcp://[::1]:1", replayEndpoint: "ipc:///x", topic: "kv", bind: true }), {
      endpoint: "tcp://[::1]:1",
      replayEndpoint: "ipc:///x",
      topic: "kv",
      bind: true,
    });
    assert.equal(read({ endpoint: "pull" })?.endpoint, "pull");
    assert.equal(read(null), null);
    assert.ok(!("kvEvents" in parseEndpoint("http://a:1")));
    for (const kvEvents of [
      "tcp://*:5557",
      {},
      { endpoint: "tcp://*" },
      { endpoint: "tcp://*:0" },
      { endpoint: "tcp://*:65536" },
      { endpoint: "udp://*:1" },
      { endpoint: "tcp://a b:1" },
      { endpoint: "tcp://*:1", replayEndpoint: "pull" },
      { endpoint: "tcp://*:1", other: 1 },
    ]) {
      assert.throws(
        () => read(kvEvents),
        (caught) => caught instanceof RouterError && /kvEvents/.test(caught.message),
      );
    }
  });
});

describe("where an engine's events are, by the engine", () => {
  const answers = (body: unknown): AskEngine => always(200, JSON.stringify(body));

  it("is what vLLM's development route says, as an object or as text", async () => {
    const settings = {
      enable_kv_cache_events: true,
      publisher: "zmq",
      endpoint: "tcp://*:15557",
      replay_endpoint: "tcp://*:15657",
      topic: "kv",
    };
    const config = { kv_events_config: settings, parallel_config: { data_parallel_size: 2 } };
    const expected = {
      endpoint: "tcp://*:15557",
      replayEndpoint: "tcp://*:15657",
      topic: "kv",
      dataParallelRanks: 2,
    };
    assert.deepEqual(await askForAdvertisedEvents(answers({ vllm_config: config })), expected);
    const text = `model='m', data_parallel_size=2, kv_events_config=KVEventsConfig(enable_kv_cache_events=True, publisher='zmq', endpoint='tcp://*:15557', replay_endpoint='tcp://*:15657', buffer_steps=100, topic='kv'), seed=0`;
    assert.deepEqual(await askForAdvertisedEvents(answers({ vllm_config: text })), expected);
    const noReplay = text.replace("'tcp://*:15657'", "None");
    assert.equal((await askForAdvertisedEvents(answers({ vllm_config: noReplay })))?.replayEndpoint, null);
    for (const off of [
      { vllm_config: { kv_events_config: null } },
      { vllm_config: { kv_events_config: { ...settings, enable_kv_cache_events: false } } },
      { vllm_config: { kv_events_config: { ...settings, publisher: "null" } } },
      { vllm_config: text.replace("=True", "=False") },
      { vllm_config: "model='m'" },
    ]) {
      assert.equal(await askForAdvertisedEvents(answers(off)), null, JSON.stringify(off));
    }
  });

  it("is what SGLang's information says, with the replay from its arguments", async () => {
    const config = JSON.stringify({ publisher: "zmq", endpoint: "tcp://*:5557", replay_endpoint: "tcp://*:5558" });
    const told = {
      publisher: "zmq",
      endpoint_host: "*",
      endpoint_port_base: 5557,
      topic: "",
      block_size: 16,
      dp_size: 4,
    };
    const expected = { endpoint: "tcp://*:5557", replayEndpoint: "tcp://*:5558", topic: "", dataParallelRanks: 4 };
    assert.deepEqual(
      await askForAdvertisedEvents(answers({ tp_size: 1, kv_events: told, kv_events_config: config })),
      expected,
    );
    assert.deepEqual(
      await askForAdvertisedEvents(answers({ tp_size: 1, dp_size: 4, kv_events_config: config })),
      expected,
    );
    assert.equal(
      await askForAdvertisedEvents(answers({ tp_size: 1, kv_events: { ...told, publisher: "null" } })),
      null,
    );
    assert.equal(await askForAdvertisedEvents(answers({ tp_size: 1, kv_events_config: "not json" })), null);
  });

  it("is nowhere for engines and others that do not tell", async () => {
    for (const ask of [recordedEngine("vllm-0.32.0").ask, recordedEngine("llamacpp").ask, always(200, "<html>")]) {
      assert.equal(await askForAdvertisedEvents(ask), null);
    }
    await assert.rejects(askForAdvertisedEvents(refuses), RouterError);
  });

  it("is on the engine's own host, whatever host it names for the replay", () => {
    const told = { topic: "kv", dataParallelRanks: null };
    assert.deepEqual(endpointsOf({ ...told, endpoint: "tcp://0.0.0.0:5557", replayEndpoint: "tcp://127.0.0.1:5558" }), {
      endpoint: "tcp://*:5557",
      replayEndpoint: "tcp://*:5558",
      topic: "kv",
    });
  });

  it("is not an address that the engine connects to", () => {
    for (const endpoint of ["tcp://10.0.0.1:5557", "tcp://router:5557", "ipc:///x", "inproc://y"]) {
      assert.equal(endpointsOf({ endpoint, replayEndpoint: null, topic: "", dataParallelRanks: null }), null);
    }
  });
});
