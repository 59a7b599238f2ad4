import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "#src/determinism/clock.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import { ManualTimers } from "#src/determinism/timers.ts";
import { parseEndpoint } from "#src/discovery/parseEndpoint.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { AskEngine } from "#src/engines/engineAdapter.ts";
import { EngineMonitor } from "#src/engines/engineMonitor.ts";
import { MonitorLog } from "./monitorLog.ts";
import { always, recordedEngine, refuses, type RecordedEngine } from "./recordedEngine.ts";

const hangs: AskEngine = () => new Promise(() => {});

const endpoint = (name: string, more: Partial<EngineEndpoint> = {}): EngineEndpoint =>
  parseEndpoint({ ...more, name, url: `http://${name}.test` });

/** A monitor over engines by name, whose behaviour a test changes in place. */
function setUp(engines: Record<string, AskEngine>) {
  const clock = new ManualClock();
  const timers = new ManualTimers(clock);
  const log = new MonitorLog();
  const closed: string[] = [];
  const monitor = new EngineMonitor({
    listener: log,
    clock,
    timers,
    random: new SeededRandom(1),
    open: ({ name }) => ({
      ask: (path, options) => (engines[name] ?? refuses)(path, options),
      close: () => Promise.resolve(void closed.push(name)),
    }),
  });
  monitor.setEndpoints(Object.keys(engines).map((name) => endpoint(name)));
  return { clock, timers, log, monitor, engines, closed };
}

/** The engine's metrics with one sample of each name set to another value. */
function setMetric(engine: RecordedEngine, name: string, value: number): void {
  engine.set("/metrics", {
    body: engine.body("/metrics").replace(new RegExp(`^(${name}(\\{.*\\})?) .*$`, "m"), `$1 ${value}`),
  });
}

describe("the engine monitor", () => {
  it("identifies an engine, then asks for health and metrics each second and models each ten", async () => {
    const { timers, log, monitor } = setUp({ a: recordedEngine("vllm-0.32.0").ask });
    await timers.advance(1);
    assert.deepEqual(log.story("a"), ["identified", "metrics", "ready"]);
    assert.equal(log.profiles.get("a")?.kind, "vllm");
    await timers.advance(20_000);
    for (const [event, least] of [
      ["ready", 19],
      ["metrics", 19],
      ["models", 2],
    ] as const) {
      const times = log.count(event, "a");
      assert.ok(times >= least && times <= least + 2, `${event}: ${times}`);
    }
    assert.equal(log.count("identified", "a"), 1);
    assert.equal(log.count("missing", "a"), 0);
    await monitor.stop();
  });

  it("applies configured ranks over the engine's own", async () => {
    const { timers, log, monitor } = setUp({ a: recordedEngine("vllm-0.32.0").ask });
    monitor.setEndpoints([endpoint("a", { dataParallelRanks: 4 })]);
    await timers.advance(100);
    assert.equal(log.profiles.get("a")?.dataParallelRanks, 4);
    await monitor.stop();
  });

  it("probes again and again, ever more seldom, until an engine answers", async () => {
    const { timers, log, monitor, engines } = setUp({ a: refuses });
    await timers.advance(60_000);
    const failures = log.count("unidentified", "a");
    assert.ok(failures >= 12 && failures <= 30, `${failures} probes in a minute`);
    assert.equal(log.healths.get("a"), "unreachable");
    engines["a"] = recordedEngine("sglang").ask;
    await timers.advance(5000);
    assert.equal(log.profiles.get("a")?.kind, "sglang");
    assert.equal(log.count("restarted", "a"), 0, "there was nothing before");
    await monitor.stop();
  });

  it("says what is wrong with an answer that is no engine, or another than configured", async () => {
    const { timers, log, monitor } = setUp({ web: always(200, "<html>"), a: recordedEngine("sglang").ask });
    monitor.setEndpoints([endpoint("web"), endpoint("a", { engine: "vllm" })]);
    await timers.advance(1000);
    assert.match(log.reasons.get("web") ?? "", /answers, but not like any engine/);
    assert.match(log.reasons.get("a") ?? "", /configured as vllm, but answers like sglang/);
    assert.equal(log.healths.size, 0, "it lives, whatever it is");
    await monitor.stop();
  });

  it("is not held up by an engine that accepts and never answers (behaviour 13)", async () => {
    const engines = Object.fromEntries(
      Array.from({ length: 8 }, (_, i) => [`e${i}`, recordedEngine("vllm-0.32.0").ask]),
    );
    const { timers, log, monitor } = setUp({ stuck: hangs, ...engines });
    await timers.advance(10_000);
    for (const name of Object.keys(engines)) {
      assert.ok(log.count("metrics", name) >= 9, name);
      assert.ok(log.count("ready", name) >= 9, name);
    }
    assert.equal(log.healths.get("stuck"), "silent");
    assert.match(log.reasons.get("stuck") ?? "", /did not answer .* within 5000 ms/);
    await monitor.stop();
  });

  it("goes on with metrics while the health route hangs, and calls that silent, not dead (behaviour 12)", async () => {
    const engine = recordedEngine("vllm-0.32.0");
    const { timers, log, monitor, engines } = setUp({ a: engine.ask });
    await timers.advance(2000);
    engines["a"] = (path) => (path === "/health" ? hangs(path) : engine.ask(path));
    const before = log.count("metrics", "a");
    await timers.advance(30_000);
    assert.equal(log.healths.get("a"), "silent");
    assert.ok(log.count("metrics", "a") - before >= 29);
    assert.equal(log.count("unreachable", "a"), 0);
    assert.equal(log.count("restarted", "a"), 0);
    engines["a"] = engine.ask;
    await timers.advance(6000);
    assert.equal(log.healths.get("a"), "ready");
    await monitor.stop();
  });

  it("has at most one question of each sort under way, and gives up the socket of one that hangs", async () => {
    let underWay = 0;
    let most = 0;
    let answering = true;
    const engine = recordedEngine("vllm-0.32.0");
    const { timers, monitor } = setUp({
      a: (path, options) => {
        if (answering) return engine.ask(path);
        most = Math.max(most, ++underWay);
        options?.signal?.addEventListener("abort", () => underWay--);
        return hangs(path);
      },
    });
    await timers.advance(100);
    answering = false;
    await timers.advance(60_000);
    assert.ok(most >= 2 && most <= 3, `${most} at once`);
    await monitor.stop();
  });

  it("tells a restart by the process's start time, once, before it identifies it anew", async () => {
    const engine = recordedEngine("vllm-0.32.0");
    const { timers, log, monitor } = setUp({ a: engine.ask });
    await timers.advance(2500);
    log.events.length = 0;
    setMetric(engine, "process_start_time_seconds", 1.7960072e9);
    engine.set("/version", { body: '{"version":"0.33.0"}' });
    await timers.advance(3000);
    assert.equal(log.count("restarted", "a"), 1);
    assert.equal(log.count("identified", "a"), 1);
    const story = log.story("a");
    assert.ok(story.indexOf("restarted") < story.indexOf("identified"));
    const since = log.events.slice(log.events.indexOf("restarted a") + 1);
    assert.equal(since[0], "identified a", "no metrics of the new process before");
    await monitor.stop();
  });

  it("tells a restart by counters that go back where no start time is told", async () => {
    const engine = recordedEngine("vllm-0.32.0");
    engine.set("/metrics", { body: engine.body("/metrics").replaceAll(/^process_.*\n/gm, "") });
    const { timers, log, monitor } = setUp({ a: engine.ask });
    await timers.advance(2500);
    setMetric(engine, "vllm:prompt_tokens_total", 600);
    await timers.advance(2000);
    assert.equal(log.count("restarted", "a"), 0);
    setMetric(engine, "vllm:prompt_tokens_total", 12);
    await timers.advance(2000);
    assert.equal(log.count("restarted", "a"), 1);
    await monitor.stop();
  });

  it("calls it a restart when another engine comes back at the address", async () => {
    const { timers, log, monitor, engines } = setUp({ a: recordedEngine("llamacpp").ask });
    await timers.advance(2000);
    engines["a"] = refuses;
    await timers.advance(3000);
    assert.equal(log.healths.get("a"), "unreachable");
    engines["a"] = recordedEngine("sglang").ask;
    await timers.advance(6000);
    assert.equal(log.count("restarted", "a"), 1);
    assert.equal(log.profiles.get("a")?.kind, "sglang");
    assert.equal(log.healths.get("a"), "ready");
    await monitor.stop();
  });

  it("calls it a restart when an engine was gone that tells neither start time nor counters", async () => {
    const engine = recordedEngine("llamacpp");
    engine.set("/metrics", null);
    const { timers, log, monitor, engines } = setUp({ a: engine.ask });
    await timers.advance(2000);
    engines["a"] = refuses;
    await timers.advance(3000);
    engines["a"] = engine.ask;
    await timers.advance(6000);
    assert.equal(log.count("restarted", "a"), 1);
    await monitor.stop();
  });

  it("does not call it a restart when the same process was out of reach", async () => {
    const engine = recordedEngine("vllm-0.32.0");
    const { timers, log, monitor, engines } = setUp({ a: engine.ask });
    await timers.advance(2000);
    engines["a"] = refuses;
    await timers.advance(3000);
    engines["a"] = engine.ask;
    await timers.advance(6000);
    assert.equal(log.count("restarted", "a"), 0);
    assert.equal(log.count("identified", "a"), 2);
    await monitor.stop();
  });

  it("is loud about a metric that disappears, and about its return (behaviour 30)", async () => {
    const engine = recordedEngine("vllm-0.32.0");
    const whole = engine.body("/metrics");
    const { timers, log, monitor } = setUp({ a: engine.ask });
    await timers.advance(2000);
    assert.equal(log.count("missing", "a"), 0);
    engine.set("/metrics", { body: whole.replaceAll("vllm:num_requests_waiting{", "vllm:num_requests_queued{") });
    await timers.advance(5000);
    assert.deepEqual(log.missingFacts.get("a"), [
      { fact: "waitingRequests", lookedFor: ["vllm:num_requests_waiting"] },
    ]);
    assert.equal(log.count("missing", "a"), 1, "once per change");
    assert.equal(log.scrapes.get("a")?.byRank.get(0)?.waitingRequests, null);
    engine.set("/metrics", { body: whole });
    await timers.advance(2000);
    assert.deepEqual(log.missingFacts.get("a"), []);
    await monitor.stop();
  });

  it("misses a fact that this engine had, though not every engine of its kind has it", async () => {
    const engine = recordedEngine("vllm-0.32.0");
    const whole = engine.body("/metrics");
    const { timers, log, monitor } = setUp({ a: engine.ask });
    engine.set("/metrics", { body: `${whole}vllm:spec_decode_num_draft_tokens_total{engine="0"} 5\n` });
    await timers.advance(3000);
    engine.set("/metrics", { body: whole });
    await timers.advance(3000);
    assert.deepEqual(
      log.missingFacts.get("a")?.map(({ fact }) => fact),
      ["draftTokensTotal"],
    );
    await monitor.stop();
  });

  it("reports metrics that fail, and looks again what engine that is", async () => {
    const engine = recordedEngine("sglang");
    const { timers, log, monitor, engines } = setUp({ a: recordedEngine("llamacpp").ask });
    await timers.advance(2000);
    engines["a"] = engine.ask;
    await timers.advance(6000);
    assert.equal(log.count("scrapeFailed", "a"), 3);
    assert.equal(log.profiles.get("a")?.kind, "sglang");
    assert.equal(log.count("restarted", "a"), 1);
    await monitor.stop();
  });

  it("reports a model list that fails, and takes up adapters that are loaded later", async () => {
    const engine = recordedEngine("vllm-0.32.0");
    const { timers, log, monitor } = setUp({ a: engine.ask });
    await timers.advance(1000);
    engine.set("/v1/models", { status: 500, body: "oops" });
    await timers.advance(10_000);
    assert.equal(log.count("modelsFailed", "a"), 1);
    engine.set("/v1/models", { body: recordedEngine("vllm-0.32.0-lora").body("/v1/models") });
    await timers.advance(10_000);
    assert.deepEqual(
      log.modelLists.get("a")?.map(({ id }) => id),
      ["target", "lora-a", "lora-b"],
    );
    await monitor.stop();
  });

  it("watches what is in the set, and leaves what stayed alone", async () => {
    const engines = {
      a: recordedEngine("vllm-0.32.0").ask,
      b: recordedEngine("sglang").ask,
      c: recordedEngine("trtllm").ask,
    };
    const { timers, log, monitor, closed } = setUp(engines);
    await timers.advance(1000);
    monitor.setEndpoints([endpoint("a"), endpoint("b", { labels: { rack: "r2" } })]);
    assert.deepEqual(closed, ["b", "c"]);
    log.events.length = 0;
    await timers.advance(2000);
    assert.equal(log.count("identified", "a"), 0, "a went on");
    assert.equal(log.count("identified", "b"), 1, "b is another endpoint now");
    assert.deepEqual(log.story("c"), [], "no more of c");
    await monitor.stop();
    assert.deepEqual(closed, ["b", "c", "a", "b"]);
  });

  it("is silent once stopped, whatever was under way", async () => {
    for (const stopped of ["probing", "watching"]) {
      const release: (() => void)[] = [];
      const engine = recordedEngine("vllm-0.32.0");
      let held = stopped === "probing";
      const { timers, log, monitor } = setUp({
        a: (path) =>
          held ? new Promise((resolve) => release.push(() => resolve(engine.ask(path)))) : engine.ask(path),
      });
      await timers.advance(9500);
      held = true;
      await timers.advance(1000);
      assert.ok(release.length > 0);
      if (stopped === "watching") assert.equal(release.length, 3, "health, metrics and models");
      await monitor.stop();
      log.events.length = 0;
      while (release.length > 0) {
        release.pop()?.();
        await timers.advance(0);
      }
      await timers.advance(60_000);
      assert.deepEqual(log.events, []);
      assert.equal(timers.pending, 0);
    }
  });

  it("spreads the scrapes of a fleet over the interval", async () => {
    const at: number[] = [];
    const clock = new ManualClock();
    const timers = new ManualTimers(clock);
    const engine = recordedEngine("vllm-0.32.0");
    const monitor = new EngineMonitor({
      listener: new MonitorLog(),
      clock,
      timers,
      random: new SeededRandom(7),
      open: () => ({
        ask: (path) => {
          if (path === "/metrics" && clock.nowMs() > 0) at.push(clock.nowMs() % 1000);
          return engine.ask(path);
        },
        close: () => Promise.resolve(),
      }),
    });
    monitor.setEndpoints(Array.from({ length: 40 }, (_, i) => endpoint(`e${i}`)));
    await timers.advance(1000);
    const quarters = [0, 0, 0, 0];
    for (const ms of at) quarters[Math.floor(ms / 250)]!++;
    for (const scrapes of quarters) assert.ok(scrapes >= 4, quarters.join());
    await monitor.stop();
  });
});
