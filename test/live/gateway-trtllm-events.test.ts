import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, it, type TestContext } from "node:test";
import { recordedEngine } from "../unit/engines/recordedEngine.ts";
import { setUp, until, type Setup } from "./gatewaySetup.ts";
import { serve } from "./recordedServer.ts";

const MODEL = "llama-3.1-8b";
const BLOCK_TOKENS = 32;

/** trtllm-serve without a publisher: its events are drained by asking, once each. */
class PulledEngine {
  readonly #answers = recordedEngine("trtllm", "/prometheus/metrics");
  #pending: object[] = [];
  #nextId = 0;

  event(data: object, rank: number | null = null): void {
    const where = rank === null ? {} : { attention_dp_rank: rank };
    this.#pending.push({ event_id: this.#nextId++, data, window_size: 4096, ...where });
  }

  /** Blocks of the prompt 0, 1, 2, … ; hashes beyond 2^53, as the engine has them. */
  stored(from: number, count: number, level = 0): void {
    const blocks = Array.from({ length: count }, (_, at) => ({
      type: "stored_block",
      block_hash: `#${hashOf(from + at)}`,
      tokens: Array.from({ length: BLOCK_TOKENS }, (__, token) => ({
        type: "unique_token",
        token_id: (from + at) * BLOCK_TOKENS + token,
        token_extra_id: 0,
      })),
      cache_level: level,
      priority: 35,
    }));
    this.event({ type: "stored", parent_hash: from === 0 ? null : `#${hashOf(from - 1)}`, blocks });
  }

  /** The buffer ran over. */
  lose(events: number): void {
    this.#nextId += events;
  }

  restart(): void {
    this.#pending = [];
    this.#nextId = 0;
    this.event({ type: "created", num_blocks_per_cache_level: [1000, 1000] });
  }

  readonly answer = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.url === "/kv_cache_events" && request.method === "POST") {
      const drained = JSON.stringify(this.#pending).replaceAll(/"#(\d+)"/g, "$1");
      this.#pending = [];
      response.writeHead(200, { "content-type": "application/json" }).end(drained);
      return;
    }
    if (request.method === "POST") {
      const usage = { prompt_tokens: 10, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 0 } };
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ object: "text_completion", choices: [{ index: 0, text: "a" }], usage }));
      return;
    }
    void this.#answers.ask(request.url ?? "/").then(({ status, body }) => response.writeHead(status).end(body));
  };
}

function hashOf(block: number): bigint {
  return 2n ** 63n + 1n + BigInt(block);
}

async function routed(t: TestContext): Promise<{ engine: PulledEngine; setup: Setup; state: () => string }> {
  const engine = new PulledEngine();
  engine.restart();
  const { url } = await serve(t, engine.answer);
  const setup = await setUp([], { engines: [{ url, kvEvents: { endpoint: "pull" } }] }, 1);
  t.after(() => setup[Symbol.asyncDispose]());
  return { engine, setup, state: () => setup.router.fleet.index.view(0).state.state };
}

/** Tokens of the prompt 0, 1, 2, … that are expected in GPU memory. */
async function predicted({ url, router }: Setup, tokens: number): Promise<number> {
  const answer = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, prompt: Array.from({ length: tokens }, (_, at) => at), max_tokens: 1 }),
  });
  assert.equal(answer.status, 200, await answer.text());
  const [decision] = router.decisions.recent(1);
  return decision!.cachedTokens(decision!.chosen);
}

describe("a TensorRT-LLM engine that has to be asked for its events", () => {
  it("is known exactly: what it stores, moves to the host and removes", async (t) => {
    const { engine, setup, state } = await routed(t);
    await until("the view is live", () => state() === "live");
    const { index } = setup.router.fleet;
    engine.stored(0, 4);
    engine.stored(4, 2);
    await until("six blocks are known", () => index.view(0).holders === 6);
    assert.equal(await predicted(setup, 6 * BLOCK_TOKENS + 1), 192);
    engine.event({
      type: "updated",
      block_hash: `#${hashOf(5)}`,
      cache_level: { type: "event_diff", new_value: 1, old_value: 0 },
    });
    engine.event({ type: "removed", block_hashes: [`#${hashOf(4)}`] });
    await until("one is gone", () => index.view(0).holders === 5);
    assert.equal(await predicted(setup, 6 * BLOCK_TOKENS + 1), 128);
    assert.equal(state(), "live");
  });

  it("is doubted after a loss, and known again once it was started anew", async (t) => {
    const { engine, setup, state } = await routed(t);
    await until("the view is live", () => state() === "live");
    engine.stored(0, 4);
    await until("four blocks are known", () => setup.router.fleet.index.view(0).holders === 4);
    engine.lose(3);
    engine.stored(0, 1);
    await until("it is doubted", () => state() === "unsure");
    engine.restart();
    engine.stored(0, 2);
    await until("it is known again", () => state() === "live");
    await until("two blocks are known", () => setup.router.fleet.index.view(0).holders === 2);
    assert.equal(await predicted(setup, 4 * BLOCK_TOKENS + 1), 64);
  });
});
