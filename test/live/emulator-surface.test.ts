import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { startEmulatedEngine, type EmulatedEngine } from "#src/emulator/emulatedEngine.ts";

interface Exchange {
  readonly label: string;
  readonly request: { method: string; path: string; headers: Record<string, string>; body: unknown };
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
}

function recorded(folder: string): Exchange[] {
  return JSON.parse(
    readFileSync(join(import.meta.dirname, `../recorded/${folder}/exchanges.json`), "utf8"),
  ) as Exchange[];
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

async function ask(engine: EmulatedEngine, { request }: Exchange): Promise<Answer> {
  const body = typeof request.body === "string" ? request.body : JSON.stringify(request.body);
  const { method, headers } = request;
  const init = request.body === null ? { method, headers } : { method, headers, body };
  const response = await fetch(`${engine.url}${request.path}`, init);
  return { status: response.status, headers: response.headers, body: await response.text() };
}

/** Values that are part of the protocol; all other strings and numbers are only compared by type. */
const FIXED = new Set(["object", "type", "role", "finish_reason", "stop_reason", "owned_by", "param", "code", "index"]);

/** Keys in their order and types of values: what a client can rely on. */
function shape(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) {
    // Ids and the text of tokens: how many is up to the tokenizer.
    if (value.every((entry) => typeof entry !== "object")) return `list of ${typeof value[0]}`;
    return value.map((entry) => shape(entry));
  }
  if (typeof value === "object" && value !== null)
    return Object.entries(value).map(([name, entry]) => [name, shape(entry, name)]);
  return FIXED.has(key) || value === null ? value : typeof value;
}

/** A body as its shape; of a stream the shape of each event. */
function shapeOf(body: string): unknown {
  if (!body.startsWith("data: ")) return shape(JSON.parse(body));
  assert.ok(body.endsWith("\n\n"));
  return body
    .slice(0, -2)
    .split("\n\n")
    .map((event) => (event === "data: [DONE]" ? event : shape(JSON.parse(event.slice("data: ".length)))));
}

function usageOf(body: string): unknown {
  const last = body.startsWith("data: ") ? body.split("\n\n").at(-3)?.slice("data: ".length) : body;
  return (JSON.parse(last ?? "") as { usage?: unknown }).usage;
}

describe("an emulated engine answers as vLLM 0.32 was recorded to", () => {
  let engine: EmulatedEngine;
  before(async () => {
    engine = await startEmulatedEngine({
      model: "tiny",
      timeScale: 0.01,
      maxModelTokens: 1024,
      kvTokens: 2048,
      blockTokens: 32,
    });
  });
  after(() => engine.stop());

  for (const exchange of recorded("vllm-0.32.0")) {
    it(exchange.label, async () => {
      const answer = await ask(engine, exchange);
      assert.equal(answer.status, exchange.status);
      assert.deepEqual(shapeOf(answer.body), shapeOf(exchange.body));
      for (const [name, value] of exchange.headers) {
        if (name === "date" || name === "content-length") continue;
        assert.equal(answer.headers.get(name), value, name);
      }
      assert.equal(answer.headers.get("connection"), null);
      // Prompts of token ids have the same length everywhere, so their usage is compared by value.
      const { prompt } = (exchange.request.body ?? {}) as { prompt?: unknown };
      if (exchange.status === 200 && Array.isArray(prompt) && exchange.body.includes('"usage":{'))
        assert.deepEqual(usageOf(answer.body), usageOf(exchange.body));
      // JSON's own error messages and the number of tokens in a chat differ.
      if (exchange.status >= 400 && exchange.label !== "err-invalid-json") assert.equal(answer.body, exchange.body);
      if (exchange.label.startsWith("x-request-id"))
        assert.equal((JSON.parse(answer.body) as { id: string }).id, (JSON.parse(exchange.body) as { id: string }).id);
    });
  }

  it("with every metric that vLLM's own scrape has, but for those of its process and HTTP server", async () => {
    const families = (text: string): string[] =>
      [...text.matchAll(/^# TYPE (vllm:\S+) (\w+)$/gm)]
        .map(([, name = "", type = ""]) => `${name} ${type}`)
        .filter((family) => !/_created |per_gpu_total |request_max_num_generation_tokens /.test(family))
        .sort();
    const text = await (await fetch(`${engine.url}/metrics`)).text();
    const original = readFileSync(join(import.meta.dirname, "../recorded/vllm-0.32.0/metrics.txt"), "utf8");
    assert.deepEqual(families(text), families(original));
    assert.match(text, /^process_start_time_seconds 1\d{9}/m);
    assert.match(text, /^vllm:cache_config_info\{.*num_gpu_blocks="64".*\} 1\.0$/m);
    assert.match(text, /^vllm:prefix_cache_hits_total\{engine="0",model_name="tiny"\} \d+\.0$/m);
  });
});

describe("an emulated engine with adapters answers as vLLM 0.32 was recorded to", () => {
  let engine: EmulatedEngine;
  before(async () => {
    engine = await startEmulatedEngine({
      model: "target",
      timeScale: 0.01,
      maxModelTokens: 4096,
      adapters: ["lora-a", "lora-b"],
    });
  });
  after(() => engine.stop());

  for (const exchange of recorded("vllm-0.32.0-lora")) {
    it(exchange.label, async () => {
      const answer = await ask(engine, exchange);
      assert.equal(answer.status, exchange.status);
      if (answer.body.startsWith("{")) assert.deepEqual(shapeOf(answer.body), shapeOf(exchange.body));
      if (exchange.status >= 400 || exchange.body.startsWith("Success")) assert.equal(answer.body, exchange.body);
    });
  }
});
