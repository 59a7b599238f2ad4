import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { chat, routable, setUp, until } from "./gatewaySetup.ts";

/** Every reservation of every replica. */
function reserved(setup: Awaited<ReturnType<typeof setUp>>): number {
  return setup.router.fleet.replicas().reduce((sum, { load }) => sum + load.requests, 0);
}

function submitted(setup: Awaited<ReturnType<typeof setUp>>): number {
  return setup.engines.reduce((sum, engine) => sum + engine.stats().submitted, 0);
}

describe("an engine that fails before its first byte", () => {
  it("is left for another, and the retry has its own record and decision", async () => {
    await using setup = await setUp([{}, {}]);
    await setup.engines[0]!.faults.set({ dieAfterTokens: 0, requestsLeft: 100 });
    for (let at = 0; at < 6; at++) {
      const response = await chat(setup.url, {});
      assert.equal(response.status, 200);
      await response.text();
    }
    const attempts = setup.logged.filter(({ kind }) => kind === "attempt");
    assert.ok(attempts.length > 0, "some request met the failing engine first");
    const [{ requestId, decisionId } = {}] = attempts;
    const joined = setup.logged.filter((line) => line["requestId"] === requestId);
    assert.deepEqual(
      joined.map(({ kind }) => kind),
      ["attempt", "request"],
    );
    assert.notEqual(joined[1]?.["decisionId"], decisionId);
    const explained = await fetch(`${setup.adminUrl}/requests/${String(requestId)}`);
    const { decisions } = (await explained.json()) as { decisions: { attempt: number }[] };
    assert.deepEqual(
      decisions.map(({ attempt }) => attempt),
      [1, 2],
    );
    assert.equal(reserved(setup), 0);
  });

  it("with an error of the client's fault is neither retried nor blamed", async () => {
    await using setup = await setUp([{}, {}]);
    for (const engine of setup.engines) await engine.faults.set({ error: { status: 422 } });
    for (let at = 0; at < 8; at++) assert.equal((await chat(setup.url, {})).status, 422);
    assert.equal(routable(setup.router), 2);
    assert.equal(setup.logged.filter(({ kind }) => kind === "attempt").length, 0);
  });

  it("everywhere gives an error that says so, once", async () => {
    await using setup = await setUp([{}, {}], { limits: { retries: 1 } });
    for (const engine of setup.engines) await engine.faults.set({ refuse: true });
    const response = await chat(setup.url, {});
    assert.equal(response.status, 502);
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    assert.deepEqual([error["code"], error["fault"], error["retryable"]], ["engine_unreachable", "engine", true]);
    assert.equal(reserved(setup), 0);
  });

  it("does not slow down what others ask: one hangs, models are listed, chats go on", async () => {
    await using setup = await setUp([{}, {}], { policy: "round-robin" });
    await setup.engines[0]!.faults.set({ hang: "all" });
    const abort = new AbortController();
    const stuck = Array.from({ length: 4 }, () =>
      fetch(`${setup.url}/v1/chat/completions`, {
        method: "POST",
        signal: abort.signal,
        headers: { "content-type": "application/json" },
        body: `{"model":"qwen3-32b","messages":[{"role":"user","content":"x"}],"max_tokens":2}`,
      }).then(
        ({ status }) => status,
        () => 0,
      ),
    );
    const answered = (await Promise.race([Promise.any(stuck), Promise.all(stuck)])) as number;
    assert.equal(answered, 200);
    const list = (await (await fetch(`${setup.url}/v1/models`)).json()) as { data: unknown[] };
    assert.equal(list.data.length, 1);
    abort.abort();
    await Promise.all(stuck);
    await until("all reservations are released", () => reserved(setup) === 0);
  });
});

describe("an engine that fails in the middle of a stream", () => {
  it("ends it with one error event and no [DONE]", async () => {
    await using setup = await setUp([{}]);
    await setup.engines[0]!.faults.set({ dieAfterTokens: 3 });
    const text = await (await chat(setup.url, { stream: true })).text();
    const events = text.split("\n\n").filter((event) => event.startsWith("data:"));
    assert.ok(events.length >= 3);
    const { error } = JSON.parse(events.at(-1)!.slice("data:".length)) as { error: Record<string, unknown> };
    assert.equal(error["code"], "engine_failed");
    assert.ok(!text.includes("[DONE]"));
    assert.equal(events.filter((event) => event.includes(`"error":`)).length, 1);
    assert.equal(submitted(setup), 1, "the prompt is not run again");
  });

  it("ends it in Anthropic's words for Anthropic's clients", async () => {
    await using setup = await setUp([{}]);
    await setup.engines[0]!.faults.set({ dieAfterTokens: 3 });
    const response = await fetch(`${setup.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: `{"model":"qwen3-32b","max_tokens":8,"stream":true,"messages":[{"role":"user","content":"x"}]}`,
    });
    assert.match(await response.text(), /event: error\ndata: \{"type":"error","error":\{"type":"api_error",.*\}\n\n$/);
  });

  it("by stalling is cut at its own limit", async () => {
    await using setup = await setUp([{}], { limits: { idleMs: 300 } });
    await setup.engines[0]!.faults.set({ stallAfterTokens: 3 });
    const text = await (await chat(setup.url, { stream: true })).text();
    assert.match(text, /"code":"idle_timeout"/);
    await until("the engine has dropped it", () => setup.engines[0]!.stats().running === 0);
  });

  it("by never starting is cut at another, and its prompt is not run elsewhere", async () => {
    await using setup = await setUp([{}, {}], { limits: { firstTokenMs: 300 } });
    for (const engine of setup.engines) await engine.faults.set({ hang: "requests" });
    const response = await chat(setup.url, {});
    assert.equal(response.status, 504);
    assert.equal(((await response.json()) as { error: { code: string } }).error.code, "first_token_timeout");
    assert.equal(
      setup.engines.reduce((sum, engine) => sum + posts(engine), 0),
      1,
    );
  });
});

function posts(engine: { stats(): { received: readonly { method: string }[] } }): number {
  return engine.stats().received.filter(({ method }) => method === "POST").length;
}

describe("a client that leaves", () => {
  it("in the middle or during the prompt frees engine and ledger", async () => {
    await using setup = await setUp([{ timeScale: 1 }]);
    const [engine] = setup.engines;
    for (const words of [5, 20_000]) {
      const abort = new AbortController();
      const asked = fetch(`${setup.url}/v1/chat/completions`, {
        method: "POST",
        signal: abort.signal,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          model: "qwen3-32b",
          stream: true,
          max_tokens: 2_000,
          messages: [{ role: "user", content: "word ".repeat(words) }],
        }),
      }).then((response) => response.text());
      await until("the engine runs it", () => engine!.stats().running === 1);
      abort.abort();
      await assert.rejects(asked);
      await until("the engine has dropped it", () => engine!.stats().running === 0);
      await until("the reservation is released", () => reserved(setup) === 0);
    }
    assert.equal(engine!.stats().aborted, 2);
    assert.equal(routable(setup.router), 1, "the replica is not blamed");
  });

  it("a hundred times leaves every counter at zero", async () => {
    await using setup = await setUp([
      { timeScale: 1, maxRunning: 8 },
      { timeScale: 1, maxRunning: 8 },
    ]);
    const leaving = Array.from({ length: 100 }, async (_, at) => {
      const abort = new AbortController();
      const asked = chatWith(setup.url, abort.signal);
      if (at % 3 > 0) await new Promise((resolve) => setTimeout(resolve, at % 50));
      abort.abort();
      await asked;
    });
    await Promise.all(leaving);
    await until("all is released", () => reserved(setup) === 0 && setup.router.scheduler.inFlight === 0);
    assert.deepEqual(setup.router.scheduler.depth, { requests: 0, bytes: 0 });
    await until("the engines are idle", () => setup.engines.every((engine) => engine.stats().running === 0));
  });
});

async function chatWith(url: string, signal: AbortSignal): Promise<void> {
  await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    signal,
    headers: { "content-type": "application/json" },
    body: `{"model":"qwen3-32b","stream":true,"max_tokens":500,"messages":[{"role":"user","content":"x"}]}`,
  })
    .then((response) => response.text())
    .catch(() => undefined);
}

describe("a fleet that is full", () => {
  it("queues what it may, and refuses the rest with the time to come back", async () => {
    const oneSlot = { maxRunning: 1, timeScale: 1, maxQueued: 1 };
    await using setup = await setUp([oneSlot], { limits: { queueRequests: 1 } });
    const abort = new AbortController();
    const long = [chatWith(setup.url, abort.signal)];
    await until("one runs", () => setup.engines[0]!.stats().running === 1);
    long.push(chatWith(setup.url, abort.signal));
    await until("one waits in the engine", () => setup.engines[0]!.stats().waiting === 1);
    long.push(chatWith(setup.url, abort.signal));
    await until("one waits in the router", () => setup.router.scheduler.depth.requests === 1);
    const refused = await chat(setup.url, {});
    assert.equal(refused.status, 429);
    assert.ok(Number(refused.headers.get("retry-after")) >= 1);
    assert.equal(((await refused.json()) as { error: { code: string } }).error.code, "queue_full");
    abort.abort();
    await Promise.all(long);
    await until("nothing waits", () => setup.router.scheduler.depth.requests === 0);
  });
});
