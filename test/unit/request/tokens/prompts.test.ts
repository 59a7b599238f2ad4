import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import type { ModelTokenizer } from "#src/request/tokens/modelTokenizer.ts";
import { promptTokens, type TokenizedApi } from "#src/request/tokens/promptTokens.ts";
import { chainRoot, tokenChain } from "#src/request/tokens/tokenChain.ts";
import { TokenFallback } from "#src/request/tokens/tokenFallback.ts";
import { AWKWARD_CASES } from "../../../engine/awkwardConversations.ts";
import { NOW } from "./jinjaHelp.ts";
import { FAMILIES, recorded, tokenizerOf } from "./recordedFolder.ts";

type Body = Readonly<Record<string, unknown>>;

function idsOf(api: TokenizedApi, body: Body, tokenizer: ModelTokenizer): number[] {
  return [...promptTokens(api, JSON.stringify(body), tokenizer, NOW).ids];
}

function reasonOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof TokenFallback) return error.reason;
    throw error;
  }
  return "none";
}

function digest(ids: readonly number[]): string {
  return createHash("sha256")
    .update(new Uint8Array(Uint32Array.from(ids).buffer))
    .digest("base64")
    .slice(0, 16);
}

const user = (content: unknown): Body => ({ role: "user", content });

describe("prompts", () => {
  for (const family of FAMILIES) {
    test(`are what vLLM makes of the same requests, with the tokenizer over ${family}`, async () => {
      const tokenizer = await tokenizerOf(family);
      const prompts = recorded(`${family}/prompts.json`) as Record<string, number[] | [number, string] | null>;
      assert.equal(Object.keys(prompts).length, AWKWARD_CASES.length);
      for (const { api, name, body } of AWKWARD_CASES) {
        const key = `${api}: ${name}`;
        const expected = prompts[key]!;
        if (expected === null) {
          assert.notEqual(
            reasonOf(() => idsOf(api, body, tokenizer)),
            "none",
            key,
          );
          continue;
        }
        const ids = idsOf(api, body, tokenizer);
        if (typeof expected[1] === "string") assert.deepEqual([ids.length, digest(ids)], expected, key);
        else assert.deepEqual(ids, expected, key);
      }
    });
  }

  test("are equal blocks through chat, completions in text and in ids, and responses", async () => {
    const tokenizer = await tokenizerOf("bytes");
    const text = `Blocks of a prompt. ${"One more sentence. ".repeat(30)}`;
    const chat = idsOf("chat", { messages: [{ role: "system", content: "s" }, user(text)] }, tokenizer);
    const rendered = `<|im_start|>system\ns<|im_end|>\n<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`;
    const plain = { add_special_tokens: false };
    const responses = idsOf("responses", { instructions: "s", input: [user(text)] }, tokenizer);
    // vLLM puts the first token before what it renders for this API.
    assert.deepEqual(responses.slice(1), chat);
    const chain = (ids: readonly number[]): BigUint64Array =>
      tokenChain(chainRoot(null, null, 16), Uint32Array.from(ids), 16);
    assert.ok(chain(chat).length > 10);
    assert.deepEqual(chain(idsOf("completions", { prompt: rendered, ...plain }, tokenizer)), chain(chat));
    assert.deepEqual(chain(idsOf("messages", { system: "s", messages: [user(text)] }, tokenizer)), chain(chat));
    assert.deepEqual(chain(idsOf("sglang_generate", { text: rendered }, tokenizer).slice(1)), chain(chat));
  });

  test("of the next turn begin with the blocks of the turn before", async () => {
    const tokenizer = await tokenizerOf("characters");
    const messages = [user("First question, and a long one."), { role: "assistant", content: "An answer." }];
    const before = idsOf("chat", { messages, add_generation_prompt: false }, tokenizer);
    const after = idsOf("chat", { messages: [...messages, user("Second question")] }, tokenizer);
    assert.deepEqual(after.slice(0, before.length), before);
  });

  test("of a list are weighed together, and the first one is identified", async () => {
    const tokenizer = await tokenizerOf("bytes");
    const one = idsOf("completions", { prompt: "first prompt" }, tokenizer);
    const both = promptTokens("completions", JSON.stringify({ prompt: ["first prompt", "second"] }), tokenizer, NOW);
    assert.deepEqual([...both.ids], one);
    assert.equal(both.tokens, one.length + idsOf("completions", { prompt: "second" }, tokenizer).length);
  });

  test("that cannot be told in the engine's tokens say why", async () => {
    const tokenizer = await tokenizerOf("bytes");
    const reason = (api: TokenizedApi, body: Body): string => reasonOf(() => idsOf(api, body, tokenizer));
    const image = { type: "image_url", image_url: { url: "http://somewhere/x.png" } };
    const x = [user("x")];
    const cases: readonly (readonly [reason: string, api: TokenizedApi, body: Body])[] = [
      ["media", "chat", { messages: [user([{ type: "text", text: "what is this?" }, image])] }],
      ["media", "responses", { input: [user([{ type: "input_image", image_url: "http://somewhere/x.png" }])] }],
      ["media", "messages", { messages: [user([{ type: "image", source: { type: "url", url: "http://x" } }])] }],
      ["media", "completions", { prompt: "x", prompt_embeds: "AAAA" }],
      ["client_template", "chat", { messages: x, chat_template: "{% for x in range(99999) %}{% endfor %}" }],
      ["client_template", "chat", { messages: x, chat_template_kwargs: { chat_template: "x" } }],
      ["template_arguments", "chat", { messages: x, chat_template_kwargs: { tokenize: false } }],
      ["stored_conversation", "responses", { input: "x", previous_response_id: "resp_1" }],
      ["unsupported_item", "responses", { input: "x", tools: [{ type: "custom", name: "c" }] }],
      ["unsupported_item", "responses", { input: [{ type: "item_reference", id: "i" }] }],
      ["truncation", "chat", { messages: x, truncate_prompt_tokens: 5 }],
      ["suffix", "completions", { prompt: "x", suffix: "y" }],
      ["malformed_prompt", "chat", { messages: "x" }],
      ["malformed_prompt", "chat", { messages: [] }],
      ["malformed_prompt", "chat", { messages: x, tools: [] }],
      ["malformed_prompt", "chat", { messages: [user(5)] }],
      ["malformed_prompt", "chat", { messages: [user("half a pair \ud800")] }],
      ["malformed_prompt", "chat", { messages: x, continue_final_message: true }],
      ["malformed_prompt", "completions", { prompt: [1, "x"] }],
    ];
    for (const [expected, api, body] of cases) assert.equal(reason(api, body), expected, JSON.stringify(body));
    assert.equal(
      reasonOf(() => promptTokens("chat", "{broken", tokenizer, NOW)),
      "malformed_prompt",
    );
  });

  test("are refused where the template refuses them or is not to be had", async () => {
    const strict = await tokenizerOf("characters");
    const messages = [user("x"), { role: "system", content: "late" }];
    assert.equal(
      reasonOf(() => idsOf("chat", { messages }, strict)),
      "template_refused",
    );
    const odd = await tokenizerOf("bytes", { chatTemplate: "{{ messages | nosuchfilter }}" });
    assert.equal(
      reasonOf(() => idsOf("chat", { messages: [user("x")] }, odd)),
      "template_unsupported",
    );
    const failing = await tokenizerOf("bytes", { chatTemplate: "{{ messages[0].content + 1 }}" });
    assert.equal(
      reasonOf(() => idsOf("chat", { messages: [user("x")] }, failing)),
      "template_failed",
    );
  });

  test("follow what the engine was told on its command line", async () => {
    const source =
      "{{ greeting }}{% for m in messages %}{% for c in m.content %}[{{ c.text }}]{% endfor %}{% endfor %}";
    const body = {
      messages: [
        user([
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ]),
      ],
    };
    const text = async (options: object): Promise<number[]> => idsOf("chat", body, await tokenizerOf("bytes", options));
    const plain = await tokenizerOf("bytes");
    const ids = (expected: string): number[] => [...plain.encode(expected, false)];
    assert.deepEqual(await text({ chatTemplate: source }), ids("[a][b]"));
    const defaults = { chatTemplate: source, defaultTemplateArguments: '{"greeting": "hi 1.0"}' };
    assert.deepEqual(await text(defaults), ids("hi 1.0[a][b]"));
    assert.deepEqual(await text({ chatTemplate: "{{ messages[0].content }}" }), ids("a\nb"));
    assert.deepEqual(
      await text({ chatTemplate: "{{ messages[0].content[1].text }}", contentFormat: "openai" }),
      ids("b"),
    );
  });
});
