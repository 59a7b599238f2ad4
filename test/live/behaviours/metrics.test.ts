// Behaviours 30 and 40: what engines' metrics lack, and what the router's own show.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startEmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { json } from "../dispatchRig.ts";
import { chat, FAST, setUp, until, type Setup } from "../gatewaySetup.ts";
import { metric } from "./books.ts";
import { answer, Worker } from "./worker.ts";

interface Condition {
  readonly condition: string;
  readonly replica: string | null;
  readonly message: string;
}

async function conditions(setup: Setup): Promise<Condition[]> {
  const ready = (await (await fetch(`${setup.adminUrl}/readyz`)).json()) as { conditions: Condition[] };
  return ready.conditions;
}

async function metrics(setup: Setup): Promise<string> {
  return (await fetch(`${setup.adminUrl}/metrics`)).text();
}

describe("30. a metric that is missing", () => {
  for (const [fact, name] of [
    ["runningRequests", "vllm:num_requests_running"],
    ["waitingRequests", "vllm:num_requests_waiting"],
    ["kvUsage", "vllm:kv_cache_usage_perc"],
  ] as const) {
    it(`(${name}, gone while all runs) is loud, is not zero, and is over when it is back`, async () => {
      const engine = await startEmulatedEngine(FAST);
      try {
        await using setup = await setUp([], { engines: [engine.url] }, 1);
        const { host } = new URL(engine.url);
        const raised = `kvasir_condition{condition="metric_missing",replica="${host}"}`;
        const [replica] = setup.router.fleet.replicas();
        await until("metrics were read", () => replica!.metrics?.value[fact] !== undefined);
        assert.notEqual(replica!.metrics?.value[fact], null);
        assert.equal(await metric(setup, raised), null);

        await engine.faults.set({ missingMetrics: [name] });
        await until("the condition is raised", async () => (await metric(setup, raised)) === 1);
        assert.equal(replica!.metrics?.value[fact], null, "unknown, which is not zero");
        const [found] = (await conditions(setup)).filter(({ condition }) => condition === "metric_missing");
        assert.equal(found?.replica, host);
        assert.ok(found?.message.includes(fact), found?.message);
        const warning = setup.logged.find(({ msg }) => msg === "engine does not publish what it should");
        assert.ok(JSON.stringify(warning).includes(name), JSON.stringify(warning));
        if (fact !== "kvUsage") {
          const gauge = `kvasir_replica_requests_${fact === "runningRequests" ? "running" : "waiting"}`;
          assert.equal(await metric(setup, `${gauge}{replica="${host}"}`), null, "no series rather than a zero");
        }
        assert.equal((await chat(setup.url, {})).status, 200, "degraded, not dead");

        await engine.faults.clear();
        await until("the condition is cleared", async () => (await metric(setup, raised)) === null);
      } finally {
        await engine.stop();
      }
    });
  }

  it("(under another name from the start) is loud as well", async () => {
    const engine = await startEmulatedEngine(FAST);
    try {
      await engine.faults.set({ missingMetrics: ["vllm:num_requests_running", "vllm:num_requests_waiting"] });
      await using setup = await setUp([], { engines: [engine.url] }, 1);
      const message = await until("it is told", async () => {
        return (await conditions(setup)).find(({ condition }) => condition === "metric_missing")?.message;
      });
      assert.match(message, /runningRequests.*waitingRequests/);
    } finally {
      await engine.stop();
    }
  });

  it("(of all that there is, because metrics grow old) is loud", async () => {
    const engine = await startEmulatedEngine(FAST);
    try {
      await using setup = await setUp([], { engines: [engine.url] }, 1);
      const [replica] = setup.router.fleet.replicas();
      await until("metrics were read", () => replica!.metrics !== null);
      // On moved time: nothing was read for a minute.
      setup.router.fleet.tick(performance.now() + 60_000);
      const [stale] = (await conditions(setup)).filter(({ condition }) => condition === "metrics_stale");
      assert.match(stale?.message ?? "", /own traffic only/);
    } finally {
      await engine.stop();
    }
  });
});

describe("40. the router's own metrics", () => {
  it("drop every series of a removed replica, also one whose requests end after it has gone", async () => {
    const held: (() => void)[] = [];
    await using worker = await Worker.start(({ socket, body }) => {
      const reply = (): boolean => socket.write(answer());
      if (body.includes("held")) held.push(reply);
      else reply();
    });
    await using setup = await setUp([], {}, 0);
    const admin = `${setup.adminUrl}/replicas`;
    for (let round = 1; round <= 3; round++) {
      const body = JSON.stringify({ url: worker.url, name: `replica-${round}` });
      await fetch(admin, { method: "POST", headers: { "content-type": "application/json" }, body });
      await until("it is ready", () => setup.router.fleet.byId(`replica-${round}`)?.lifecycle.state === "ready");
      assert.equal((await chat(setup.url, {})).status, 200);
      const late = chat(setup.url, { user: "held" });
      await until("one is held", () => held.length > 0);
      assert.match(await metrics(setup), new RegExp(`replica="replica-${round}"`));
      assert.equal((await fetch(`${admin}/replica-${round}`, { method: "DELETE" })).status, 200);
      assert.doesNotMatch(await metrics(setup), /replica="replica-/);
      for (const reply of held.splice(0)) reply();
      await (await late).text();
      assert.doesNotMatch(await metrics(setup), /replica="replica-/);
    }
  });

  it("report whether a request may go there, not whether something lives there", async () => {
    let failing = false;
    let busy = false;
    await using worker = await Worker.start(({ socket }) => {
      if (failing) socket.end();
      else socket.write(busy ? json({}, "429 Too Many Requests", "Retry-After: 1\r\n") : answer());
    });
    await using setup = await setUp([], { engines: [worker.url], limits: { retries: 0, queueMs: 300 } }, 1);
    const routable = (): Promise<number | null> => metric(setup, `kvasir_replica_routable{replica="${worker.id}"}`);
    const state = (name: string): Promise<number | null> =>
      metric(setup, `kvasir_replica_state{replica="${worker.id}",engine="vllm",state="${name}"}`);
    const ready = async (): Promise<number> => (await fetch(`${setup.url}/readyz`)).status;
    assert.deepEqual([await routable(), await state("ready"), await ready()], [1, 1, 200]);

    busy = true;
    assert.equal((await chat(setup.url, {})).status, 429);
    assert.deepEqual([await routable(), await state("ready")], [0, 1], "it lives, and wants nothing now");
    busy = false;
    await until("it may be asked again", async () => (await routable()) === 1);

    worker.probed.health = "unready";
    await until("its health route says no", async () => (await routable()) === 0);
    assert.deepEqual(
      [await state("loading"), await ready(), (await fetch(`${setup.url}/healthz`)).status],
      [1, 503, 200],
    );
    worker.probed.health = "ok";
    await until("and yes again", async () => (await routable()) === 1);

    failing = true;
    for (let at = 0; at < 3; at++) assert.equal((await chat(setup.url, {})).status, 502);
    assert.deepEqual(
      [await routable(), await state("quarantined"), await ready()],
      [0, 1, 503],
      "its health route is fine",
    );
  });
});
