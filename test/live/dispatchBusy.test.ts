import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { describe, it } from "node:test";
import type { ConfigInput } from "#src/config/schema.ts";
import { chat, setUp, until } from "./gatewaySetup.ts";
import { startScriptedEngine } from "./scriptedEngine.ts";

/** Through the whole gateway, in front of one scripted engine. */
async function routed(script: (response: ServerResponse) => void, limits: ConfigInput["limits"] = {}) {
  const engine = await startScriptedEngine((_, response) => script(response));
  const setup = await setUp([], { engines: [engine.url], limits });
  await until("it is ready", () => setup.router.fleet.replicas()[0]?.lifecycle.state === "ready");
  return {
    url: setup.url,
    engine,
    setup,
    async [Symbol.asyncDispose]() {
      await setup[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    },
  };
}

describe("an engine that answers 503 because it is full", () => {
  it("gets the others later: everybody is answered, though it never said how many it takes", async () => {
    const slots = 2;
    let running = 0;
    let refused = 0;
    const script = (response: ServerResponse): void => {
      if (running === slots) {
        refused++;
        response.writeHead(503).end();
        return;
      }
      running++;
      setTimeout(() => {
        running--;
        response.setHeader("content-type", "application/json");
        response.end("{}");
      }, 300);
    };
    await using router = await routed(script, { retries: 0 });
    const answers = await Promise.all(Array.from({ length: 16 }, () => chat(router.url, {})));
    assert.deepEqual(
      answers.map(({ status }) => status),
      Array.from({ length: 16 }, () => 200),
    );
    assert.ok(refused > 0);
  });

  it("is waited for as long as the queue allows, counted from the first attempt; then its answer is passed on", async () => {
    await using router = await routed(
      (response) => response.writeHead(503, { "retry-after": "0" }).end(),
      // No retry is left after the first; those who wait are looked after every 50 ms.
      { queueMs: 400, retries: 0 },
    );
    const response = await chat(router.url, {});
    assert.equal(response.status, 503);
    assert.ok(Number(response.headers.get("retry-after")) >= 0);
    assert.equal(((await response.json()) as { error: { code: string } }).error.code, "engine_busy");
    const attempts = router.engine.seen.length;
    assert.ok(attempts > 1, "asked again");
    assert.ok(attempts <= 1 + 400 / 50, `not in a loop, but ${attempts} times`);
  });

  it("with Retry-After beyond the queue's time is not asked again", async () => {
    await using router = await routed((response) => response.writeHead(429, { "retry-after": "7" }).end(), {
      queueMs: 100,
    });
    const response = await chat(router.url, {});
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("retry-after"), "7");
    assert.equal(router.engine.seen.length, 1);
  });
});
