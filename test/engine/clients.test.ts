import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI, * as openai from "openai";
import { engines } from "./engines.ts";
import { MAX_MODEL_TOKENS } from "./kit/engine.ts";
import { setUp, until, type Setup } from "./routerSetup.ts";

const messages = [{ role: "user" as const, content: "Say something." }];
/** Text for a model that says anything but the end. */
const endless = { ignore_eos: true, temperature: 0 };

describe("real clients of a real engine, through the router", () => {
  let setup: Setup;
  let client: OpenAI;
  before(async () => {
    setup = await setUp(engines, { models: { target: { aliases: ["gpt-4o"] } } });
    client = new OpenAI({ baseURL: `${setup.url}/v1`, apiKey: "none", maxRetries: 0 });
  });
  after(() => setup[Symbol.asyncDispose]());

  it("see the models of the fleet, adapters and aliases, each once", async () => {
    const ids = (await client.models.list()).data.map(({ id }) => id);
    assert.deepEqual(ids.toSorted(), ["adapter-a", "adapter-b", "gpt-4o", "target"]);
  });

  it("chat, whole and streamed, with equal text", async () => {
    const asked = { model: "gpt-4o", messages, max_tokens: 12, ...endless };
    const { data: whole, response } = await client.chat.completions.create(asked).withResponse();
    assert.equal(whole.usage?.completion_tokens, 12);
    assert.ok(whole.id.endsWith(response.headers.get("x-request-id") ?? "none"), "the engine got the router's id");
    const stream = await client.chat.completions.create({ ...asked, stream: true });
    let text = "";
    for await (const chunk of stream) {
      assert.equal(chunk.choices.length, 1, "the usage chunk that only the router wanted is not passed on");
      text += chunk.choices[0]?.delta.content ?? "";
    }
    assert.equal(text, whole.choices[0]?.message.content);
  });

  it("get the usage chunk that they ask for, with what was cached", async () => {
    const content = "A prompt that is long enough for some blocks. ".repeat(30);
    const usages = [];
    for (let at = 0; at < 2; at++) {
      const stream = await client.chat.completions.create({
        model: "target",
        messages: [{ role: "user", content }],
        max_tokens: 3,
        stream: true,
        stream_options: { include_usage: true },
        ...endless,
      });
      for await (const chunk of stream) if (chunk.usage) usages.push(chunk.usage);
    }
    assert.equal(usages.length, 2);
    assert.equal(usages[0]!.completion_tokens, 3);
    assert.ok((usages[1]!.prompt_tokens_details?.cached_tokens ?? 0) >= 256);
  });

  it("complete with an adapter, use responses and Anthropic's messages", async () => {
    const plain = await client.completions.create({ model: "target", prompt: "Once", max_tokens: 6, ...endless });
    const other = await client.completions.create({ model: "adapter-a", prompt: "Once", max_tokens: 6, ...endless });
    assert.notEqual(plain.choices[0]?.text, other.choices[0]?.text);
    const answer = await client.responses.create({ model: "target", input: "Hello", max_output_tokens: 8 });
    assert.ok(answer.usage!.input_tokens > 0);
    const anthropic = new Anthropic({ baseURL: setup.url, apiKey: "none", maxRetries: 0 });
    const message = await anthropic.messages.create({ model: "target", max_tokens: 5, messages });
    assert.ok(message.usage.input_tokens > 0 && message.usage.output_tokens > 0);
    let events = 0;
    for await (const event of anthropic.messages.stream({ model: "target", max_tokens: 5, messages })) {
      if (event.type === "content_block_delta") events++;
    }
    assert.ok(events > 0);
  });

  it("get the engine's own errors, and the router's", async () => {
    const long = "word ".repeat(2 * MAX_MODEL_TOKENS);
    await assert.rejects(client.completions.create({ model: "target", prompt: long }), openai.BadRequestError);
    await assert.rejects(
      client.chat.completions.create({ model: "target", messages, max_tokens: -1 }),
      openai.BadRequestError,
    );
    await assert.rejects(client.chat.completions.create({ model: "nope", messages }), openai.NotFoundError);
    for (const { lifecycle } of setup.router.fleet.replicas()) assert.equal(lifecycle.state, "ready");
  });

  it("leave their traces in the metrics of engines and router", async () => {
    await until("metrics were read", () => setup.router.fleet.replicas().every(({ metrics }) => metrics !== null));
    for (const replica of setup.router.fleet.replicas()) {
      const { kvBlockTokens, prefixCachingEnabled } = replica.metrics!.value;
      assert.deepEqual({ kvBlockTokens, prefixCachingEnabled }, { kvBlockTokens: 32, prefixCachingEnabled: true });
      assert.equal(replica.limits().kvCapacityTokens, 512 * 32);
    }
    const text = await (await fetch(`${setup.adminUrl}/metrics`)).text();
    assert.match(text, /kvasir_requests_total\{model="target",status="200",code=""\} [1-9]/);
    assert.equal([...text.matchAll(/kvasir_replica_view_state\{replica="[^"]+",state="live"\} 1/g)].length, 2);
    assert.ok(!text.includes("metric_missing"), "the engine publishes all facts");
  });
});
