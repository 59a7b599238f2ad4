import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import Anthropic, { NotFoundError } from "@anthropic-ai/sdk";
import OpenAI, { toFile } from "openai";
import { startEmulatedEngine, type EmulatedEngine } from "#src/emulator/emulatedEngine.ts";

describe("an emulated engine satisfies", () => {
  let engine: EmulatedEngine;
  let openai: OpenAI;
  let anthropic: Anthropic;
  before(async () => {
    engine = await startEmulatedEngine({ model: "m", timeScale: 0.01, adapters: ["lora"] });
    openai = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: "unused", maxRetries: 0 });
    anthropic = new Anthropic({ baseURL: engine.url, apiKey: "unused", maxRetries: 0 });
  });
  after(() => engine.stop());
  const messages = [{ role: "user" as const, content: "hello" }];

  it("OpenAI's client: a streamed chat is the unary one in pieces", async () => {
    const unary = await openai.chat.completions.create({ model: "m", messages, max_completion_tokens: 7 });
    const stream = await openai.chat.completions.create({
      model: "m",
      messages,
      max_completion_tokens: 7,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage;
    }
    assert.equal(text, unary.choices[0]?.message.content);
    assert.equal(usage?.completion_tokens, 7);
    assert.equal(unary.choices[0]?.finish_reason, "length");
  });

  it("OpenAI's client: an answer without a limit ends by itself", async () => {
    const answer = await openai.chat.completions.create({ model: "m", messages });
    assert.equal(answer.choices[0]?.finish_reason, "stop");
  });

  it("OpenAI's client: choices, stop strings and adapters", async () => {
    const two = await openai.chat.completions.create({ model: "m", messages, n: 2, max_tokens: 9 });
    const [first, second] = two.choices.map(({ message }) => message.content ?? "");
    assert.notEqual(first, second);
    const word = first?.split(" ")[3] ?? "";
    const stopped = await openai.chat.completions.create({ model: "m", messages, max_tokens: 9, stop: [word] });
    assert.equal(stopped.choices[0]?.finish_reason, "stop");
    assert.equal(stopped.choices[0]?.message.content, first?.slice(0, first.indexOf(word)));
    const adapted = await openai.chat.completions.create({ model: "lora", messages, max_tokens: 9 });
    assert.notEqual(adapted.choices[0]?.message.content, first);
  });

  it("OpenAI's client: responses, streamed too", async () => {
    const unary = await openai.responses.create({ model: "m", input: "hello", max_output_tokens: 6 });
    assert.deepEqual([unary.status, unary.incomplete_details?.reason], ["incomplete", "max_output_tokens"]);
    const stream = openai.responses.stream({ model: "m", input: "hello", max_output_tokens: 6 });
    const deltas: string[] = [];
    const types: string[] = [];
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === "response.output_text.delta") deltas.push(event.delta);
    }
    const final = await stream.finalResponse();
    assert.equal(deltas.join(""), unary.output_text);
    assert.equal(final.output_text, unary.output_text);
    assert.deepEqual(
      types.filter((type) => type !== "response.output_text.delta"),
      [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
      ],
    );
    assert.equal(final.usage?.output_tokens, 6);
  });

  it("OpenAI's client: embeddings are unit vectors, equal for equal texts", async () => {
    const { data, usage } = await openai.embeddings.create({ model: "m", input: ["a b", "c", "a b"] });
    const [first, second, third] = data.map(({ embedding }) => embedding);
    assert.deepEqual(first, third);
    assert.notDeepEqual(first, second);
    assert.ok(Math.abs(Math.hypot(...(first ?? [])) - 1) < 1e-6);
    assert.ok(usage.prompt_tokens > 0);
    assert.equal(engine.stats().running, 0);
  });

  it("OpenAI's client: a transcription, whose form has the model last", async () => {
    const file = await toFile(Buffer.alloc(100_000, "sound"), "a.wav");
    const { text } = await openai.audio.transcriptions.create({ file, response_format: "json", model: "lora" });
    assert.match(text, /^\w+/);
    await assert.rejects(openai.audio.transcriptions.create({ file, model: "nope" }), { status: 404 });
  });

  it("OpenAI's client: models and errors", async () => {
    const ids = (await openai.models.list()).data.map(({ id }) => id);
    assert.deepEqual(ids, ["m", "lora"]);
    await assert.rejects(openai.chat.completions.create({ model: "nope", messages }), { status: 404 });
  });

  it("Anthropic's client: unary, streamed, counted, refused", async () => {
    const body = { model: "m", max_tokens: 6, messages, system: "be brief" };
    const unary = await anthropic.messages.create(body);
    const stream = anthropic.messages.stream(body);
    const pieces: string[] = [];
    stream.on("text", (piece) => pieces.push(piece));
    const final = await stream.finalMessage();
    const text = unary.content[0]?.type === "text" ? unary.content[0].text : "";
    assert.equal(pieces.length, 6);
    assert.equal(pieces.join(""), text);
    assert.deepEqual([final.stop_reason, final.usage.output_tokens], ["max_tokens", 6]);
    const { input_tokens } = await anthropic.messages.countTokens({ model: "m", messages, system: "be brief" });
    assert.equal(unary.usage.input_tokens + (unary.usage.cache_read_input_tokens ?? 0), input_tokens);
    await assert.rejects(
      anthropic.messages.create({ ...body, model: "nope" }),
      (error) => error instanceof NotFoundError,
    );
  });
});

describe("two emulated engines", () => {
  it("give the same request the same text, and each finds the next turn cached, answer included", async (t) => {
    const engines = await Promise.all([1, 2].map(() => startEmulatedEngine({ model: "m", timeScale: 0.01 })));
    t.after(() => Promise.all(engines.map((engine) => engine.stop())));
    const turns = engines.map(async (engine) => {
      const client = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: "unused", maxRetries: 0 });
      const first = [{ role: "user" as const, content: "tell me of caches ".repeat(10) }];
      const answer = await client.chat.completions.create({ model: "m", messages: first, max_tokens: 64 });
      const content = answer.choices[0]?.message.content ?? "";
      const next = await client.chat.completions.create({
        model: "m",
        messages: [...first, { role: "assistant", content }, { role: "user", content: "go on" }],
        max_tokens: 1,
      });
      const held = answer.usage?.total_tokens ?? 0;
      // The last token of an answer is not computed by the turn that makes it.
      assert.equal(next.usage?.prompt_tokens_details?.cached_tokens, Math.floor((held - 1) / 16) * 16);
      return content;
    });
    const [one, other] = await Promise.all(turns);
    assert.equal(one, other);
  });
});
