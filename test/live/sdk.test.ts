import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import Anthropic, * as anthropic from "@anthropic-ai/sdk";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import OpenAI, * as openai from "openai";
import { hashClientKey } from "#src/gateway/clientKey.ts";
import { MODEL, setUp, type Setup } from "./gatewaySetup.ts";

const KEY = "kv-test-key";
const messages = [{ role: "user" as const, content: "Say something." }];

describe("real clients", () => {
  let setup: Setup;
  before(async () => {
    setup = await setUp([{ adapters: ["sql"] }, {}], {
      keys: [{ name: "tests", hash: hashClientKey(KEY) }],
      models: { [MODEL]: { aliases: ["gpt-4o"] } },
    });
  });
  after(() => setup[Symbol.asyncDispose]());

  describe("openai", () => {
    const client = (apiKey = KEY): OpenAI => new OpenAI({ baseURL: `${setup.url}/v1`, apiKey, maxRetries: 0 });

    it("lists models: the fleet's, with adapters and aliases, each once", async () => {
      const ids = (await client().models.list()).data.map(({ id }) => id);
      assert.deepEqual(ids.toSorted(), ["gpt-4o", MODEL, "sql"].toSorted());
      assert.equal((await client().models.retrieve("gpt-4o")).id, "gpt-4o");
      await assert.rejects(client().models.retrieve("nope"), openai.NotFoundError);
    });

    it("chats, whole and streamed", async () => {
      const { data: answer, response } = await client()
        .chat.completions.create({ model: MODEL, messages, max_tokens: 5 })
        .withResponse();
      assert.equal(answer.usage?.completion_tokens, 5);
      assert.ok(answer.choices[0]?.message.content);
      assert.match(response.headers.get("x-kvasir-replica") ?? "", /^127\.0\.0\.1:\d+$/);
      assert.ok(response.headers.get("x-kvasir-decision"));
      assert.ok(answer.id.endsWith(response.headers.get("x-request-id") ?? "none"));

      const stream = await client().chat.completions.create({ model: "gpt-4o", messages, max_tokens: 5, stream: true });
      let text = "";
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? "";
        assert.equal(chunk.choices.length, 1, "no usage chunk was asked for");
      }
      assert.ok(text.length > 0);
    });

    it("gets the usage chunk when it asks for it", async () => {
      const stream = await client().chat.completions.create({
        model: MODEL,
        messages,
        max_tokens: 5,
        stream: true,
        stream_options: { include_usage: true },
      });
      const usages = [];
      for await (const chunk of stream) if (chunk.usage) usages.push(chunk.usage.completion_tokens);
      assert.deepEqual(usages, [5]);
    });

    it("completes, embeds and answers responses", async () => {
      const completion = await client().completions.create({ model: MODEL, prompt: "Once", max_tokens: 3 });
      assert.equal(completion.usage?.completion_tokens, 3);
      const embedding = await client().embeddings.create({ model: MODEL, input: ["a", "b"] });
      assert.equal(embedding.data.length, 2);
      const response = await client().responses.create({ model: MODEL, input: "Hello", max_output_tokens: 4 });
      assert.ok(response.output_text.length > 0);
      const types = [];
      const stream = await client().responses.create({ model: MODEL, input: "Hi", max_output_tokens: 4, stream: true });
      for await (const event of stream) types.push(event.type);
      assert.equal(types[0], "response.created");
      assert.equal(types.at(-1), "response.completed");
    });

    it("reaches an adapter, on the replica that has it", async () => {
      const before = setup.engines.map((engine) => engine.stats().submitted);
      for (let at = 0; at < 4; at++) await client().chat.completions.create({ model: "sql", messages, max_tokens: 2 });
      const after = setup.engines.map((engine) => engine.stats().submitted);
      assert.deepEqual(
        after.map((count, at) => count - (before[at] ?? 0)),
        [4, 0],
      );
    });

    it("understands errors", async () => {
      await assert.rejects(client("wrong").models.list(), openai.AuthenticationError);
      await assert.rejects(
        client().chat.completions.create({ model: "unknown", messages }),
        (error: unknown) => error instanceof openai.NotFoundError && error.code === "model_not_found",
      );
    });
  });

  describe("anthropic", () => {
    const client = (apiKey = KEY): Anthropic => new Anthropic({ baseURL: setup.url, apiKey, maxRetries: 0 });

    it("gets messages, whole and streamed, and counts tokens", async () => {
      const message = await client().messages.create({ model: MODEL, max_tokens: 5, messages });
      assert.equal(message.usage.output_tokens, 5);
      assert.match(message._request_id ?? "none", /^[0-9a-f-]{36}$/);
      const streamed = await client().messages.stream({ model: MODEL, max_tokens: 5, messages }).finalMessage();
      assert.equal(streamed.usage.output_tokens, 5);
      const { input_tokens: counted } = await client().messages.countTokens({ model: MODEL, messages });
      assert.ok(counted > 0);
    });

    it("understands errors", async () => {
      await assert.rejects(
        client().messages.create({ model: "unknown", max_tokens: 5, messages }),
        (error: unknown) =>
          error instanceof anthropic.NotFoundError &&
          /"type":"not_found_error"/.test(error.message) &&
          error.message.includes(error.requestID ?? "none"),
      );
      await assert.rejects(
        client("wrong").messages.create({ model: MODEL, max_tokens: 5, messages }),
        (error: unknown) => error instanceof anthropic.AuthenticationError && /"type":"error"/.test(error.message),
      );
    });
  });

  it("ai SDK generates and streams", async () => {
    const provider = createOpenAICompatible({ name: "kvasir", baseURL: `${setup.url}/v1`, apiKey: KEY });
    const whole = await generateText({ model: provider(MODEL), prompt: "Hello", maxOutputTokens: 5 });
    assert.equal(whole.usage.outputTokens, 5);
    const streamed = streamText({ model: provider(MODEL), prompt: "Hello", maxOutputTokens: 5 });
    let text = "";
    for await (const piece of streamed.textStream) text += piece;
    assert.ok(text.length > 0);
  });

  it("curl does, as in the README", async () => {
    const body = JSON.stringify({ model: MODEL, messages, max_tokens: 3, stream: true });
    const headers = ["-H", "content-type: application/json", "-H", `authorization: Bearer ${KEY}`];
    const args = ["-sS", "-N", "--max-time", "10", ...headers, "-d", body, `${setup.url}/v1/chat/completions`];
    const { stdout } = await promisify(execFile)("curl", args);
    assert.match(stdout, /^data: \{.*\}\n\n/);
    assert.match(stdout, /data: \[DONE\]\n\n$/);
  });

  it("never show their key to an engine or in the log", () => {
    for (const engine of setup.engines) {
      assert.ok(engine.stats().received.length > 0);
      for (const { headers, body } of engine.stats().received) {
        assert.ok(!JSON.stringify(headers).includes(KEY) && !body.includes(KEY));
      }
    }
    assert.ok(!JSON.stringify(setup.logged).includes(KEY));
  });
});
