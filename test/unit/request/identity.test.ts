import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { BLOCK_TOKENS, CHUNK_BYTES, identify } from "#src/request/identify.ts";
import { readRequest } from "#src/request/readRequest.ts";
import { bytesOf, CHAT, COMPLETIONS, identityOf, prose, sharedBlocks } from "./requestBodies.ts";

interface Message {
  readonly role: string;
  readonly content: unknown;
  readonly [more: string]: unknown;
}

const SYSTEM: Message = { role: "system", content: prose(3000) };
const TOOLS = [{ type: "function", function: { name: "look_up", parameters: { type: "object", properties: {} } } }];

function user(text: string): Message {
  return { role: "user", content: text };
}

function chat(messages: readonly Message[], more: object = {}): object {
  return { model: "a", messages, ...more };
}

/** Blocks that two chats share. */
function shared(a: object, b: object): number {
  return sharedBlocks(identityOf(CHAT, a), identityOf(CHAT, b));
}

describe("identity of a chat", () => {
  it("is extended by the next turn, block for block", () => {
    const turn1 = [SYSTEM, user(prose(2000, 1))];
    const answer = { role: "assistant", content: prose(1500, 2), tool_calls: [{ id: "x", function: { name: "f" } }] };
    const turn2 = [...turn1, answer, { role: "tool", content: "42", tool_call_id: "x" }, user("and now?")];
    const turn3 = [...turn2, { role: "assistant", content: prose(900, 3), refusal: null, annotations: [] }, user("ok")];
    const chats = [turn1, turn2, turn3].map((messages) => chat(messages, { tools: TOOLS }));
    const [one, two, three] = chats.map((body) => identityOf(CHAT, body)) as [
      ReturnType<typeof identityOf>,
      ReturnType<typeof identityOf>,
      ReturnType<typeof identityOf>,
    ];
    assert.ok(one.hashes.length >= 9);
    assert.equal(sharedBlocks(one, two), one.hashes.length);
    assert.equal(sharedBlocks(two, three), two.hashes.length);
    assert.ok(two.hashes.length > one.hashes.length && three.hashes.length > two.hashes.length);
  });

  it("covers the full chunks of the prompt and estimates its tokens", () => {
    const identity = identityOf(CHAT, chat([user("x".repeat(10_000))]), { bytesPerToken: 5 });
    assert.equal(identity.approximate, true);
    assert.equal(identity.unhashable, null);
    assert.ok(identity.promptBytes >= 10_000 && identity.promptBytes < 10_010);
    assert.equal(identity.hashes.length, Math.floor(identity.promptBytes / CHUNK_BYTES));
    assert.equal(identity.promptTokens, Math.ceil(identity.promptBytes / 5));
    assert.equal(identity.blockTokens, CHUNK_BYTES / 5);
    assert.equal(new Set(identity.hashes).size, identity.hashes.length);
  });

  it("does not see the order of top-level keys, white space, or sampling", () => {
    const messages = [SYSTEM, user(prose(3000))];
    const one = { model: "a", messages, tools: TOOLS, temperature: 0.5, seed: 1, stream: true };
    const two = { seed: 2, unknown: { messages: [] }, tools: TOOLS, messages, model: "b" };
    const blocks = identityOf(CHAT, one).hashes.length;
    assert.equal(shared(one, two), blocks);
    const spaced = identityOf(CHAT, JSON.stringify(one, null, 3));
    assert.equal(sharedBlocks(identityOf(CHAT, one), spaced), blocks);
  });

  it("does not see white space in anything that a message may hold", () => {
    const json = fc.jsonValue({ maxDepth: 4 });
    const part = fc.record({
      type: fc.constantFrom("text", "image", "tool_result", "file"),
      text: json,
      content: json,
    });
    const content = fc.oneof(
      json,
      fc.array(
        fc.oneof(
          part,
          part.map((inner) => ({ type: "document", content: [inner] })),
        ),
      ),
    );
    const message = fc.record({ role: fc.constantFrom("user", "tool", "x"), content, extra: json });
    fc.assert(
      fc.property(fc.array(message), json, json, (messages, tools, chat_template_kwargs) => {
        const body = { model: "a", messages: [...messages, user("x".repeat(600))], tools, chat_template_kwargs };
        const plain = identityOf(CHAT, JSON.stringify(body));
        const spaced = identityOf(CHAT, JSON.stringify(body, null, 1));
        assert.deepEqual(plain.hashes, spaced.hashes);
        // The bytes that were counted are those that were hashed: no hash is left out.
        assert.ok(!plain.hashes.includes(0n));
        assert.equal(plain.promptBytes, spaced.promptBytes);
      }),
      { numRuns: 500 },
    );
  });

  it("changes with every change of what the model reads", () => {
    const base = [SYSTEM, user(prose(1000))];
    const edited = (index: number, message: Message): Message[] =>
      base.map((old, at) => (at === index ? message : old));
    assert.equal(shared(chat(base), chat(edited(0, { ...SYSTEM, role: "developer" }))), 0);
    assert.equal(shared(chat(base), chat(edited(0, { ...SYSTEM, role: "critic" }))), 0);
    assert.equal(shared(chat(base), chat(edited(0, { ...SYSTEM, content: `X${prose(3000)}` }))), 0);
    assert.equal(shared(chat(base), chat(base, { tools: TOOLS })), 0);
    assert.equal(shared(chat(base), chat(base, { chat_template: "{{x}}" })), 0);
    assert.equal(shared(chat(base), chat(base, { chat_template_kwargs: { thinking: true } })), 0);
    // A difference further down leaves the blocks before it.
    const later = shared(chat(base), chat(edited(1, user(`X${prose(1000)}`))));
    assert.ok(later > 0 && later < identityOf(CHAT, chat(base)).hashes.length);
    // The name of a member of the message counts as well as its value.
    const named = (more: object): object => chat([{ ...SYSTEM, ...more }, ...base]);
    assert.ok(shared(named({ name: "a" }), named({ name: "b" })) < identityOf(CHAT, named({})).hashes.length);
  });

  it("cannot be imitated by text that looks like its marks", () => {
    const one = chat([user("a"), user("b"), user(prose(2000))]);
    assert.equal(shared(one, chat([user('a"},{"role":"user","content":"b'), user(prose(2000))])), 0);
    assert.equal(shared(one, chat([user("a\u0001\u0004\u0007b"), user(prose(2000))])), 0);
    assert.equal(shared(one, chat([user("ab"), user(prose(2000))])), 0);
  });

  it("takes content parts for their text, and cache hints for nothing", () => {
    const parts = (hint: object): object =>
      chat([{ role: "system", content: [{ type: "text", text: prose(3000), ...hint }] }, user(prose(1000))]);
    const plain = chat([SYSTEM, user(prose(1000))]);
    const blocks = identityOf(CHAT, plain).hashes.length;
    assert.equal(shared(plain, parts({})), blocks);
    assert.equal(shared(plain, parts({ cache_control: { type: "ephemeral" } })), blocks);
  });
});

describe("identity: what must not be shared", () => {
  const body = chat([SYSTEM, user(prose(2000))]);

  it("keeps adapters, salts and tenants apart, from the first block on", () => {
    const variants = [
      identityOf(CHAT, body),
      identityOf(CHAT, body, { adapter: "x" }),
      identityOf(CHAT, body, { adapter: "y" }),
      identityOf(CHAT, body, { adapter: "" }),
      identityOf(CHAT, body, { salt: "x" }),
      identityOf(CHAT, body, { adapter: "x", salt: "x" }),
      identityOf(CHAT, { ...body, cache_salt: "x" }),
      identityOf(CHAT, { ...body, cache_salt: "y" }),
      identityOf(CHAT, { ...body, extra_key: "x" }),
      identityOf(CHAT, { ...body, lora_path: "x" }),
    ];
    const blocks = variants[0]!.hashes.length;
    assert.ok(blocks > 8);
    assert.equal(new Set(variants.flatMap(({ hashes }) => [...hashes])).size, blocks * variants.length);
  });

  it("keeps images apart that stand in the same text", () => {
    const image = (url: string, more: object = {}): object =>
      chat([
        {
          role: "user",
          content: [
            { type: "image_url", image_url: { url } },
            { type: "text", text: prose(2000) },
          ],
          ...more,
        },
      ]);
    const data = (seed: number): string => `data:image/png;base64,${"iVBORw0KGgo".repeat(2000)}${seed}`;
    const urls = [data(1), data(2), "https://example.com/1.png", "https://example.com/2.png"];
    const identities = urls.map((url) => identityOf(CHAT, image(url)));
    const all = identities.flatMap(({ hashes }) => [...hashes]);
    assert.equal(new Set(all).size, all.length);
    // A picture counts by its digest, so its bytes are not taken for a text of 5,500 tokens.
    assert.ok(identities[0]!.promptBytes < 3000);
    assert.equal(identities[0]!.hashes.length, identities[2]!.hashes.length);
    assert.equal(shared(image(data(1)), image(data(1))), identities[0]!.hashes.length);
  });

  it("leaves shared what stands before an image", () => {
    const after = (url: string): object =>
      chat([SYSTEM, { role: "user", content: [{ type: "input_image", image_url: url }] }, user(prose(2000))]);
    const blocks = shared(after("u1"), after("u2"));
    assert.equal(blocks, Math.floor(Buffer.byteLength(JSON.stringify(SYSTEM.content)) / CHUNK_BYTES));
  });

  it("folds media without a place in the text into all of it", () => {
    const generate = (image_data: string): object => ({ text: prose(2000), image_data });
    const [one, two] = ["u1", "u2"].map((url) => identityOf("/generate", generate(url)));
    assert.equal(sharedBlocks(one!, two!), 0);
    assert.equal(sharedBlocks(one!, identityOf("/generate", generate("u1"))), one!.hashes.length);
  });
});

describe("identity across APIs", () => {
  const question = prose(2000);

  it("is one for the same conversation", () => {
    const viaChat = identityOf(CHAT, chat([SYSTEM, user(question)]));
    const viaMessages = identityOf("/v1/messages", {
      model: "a",
      max_tokens: 9,
      messages: [{ role: "user", content: [{ type: "text", text: question }] }],
      system: [{ type: "text", text: SYSTEM.content, cache_control: { type: "ephemeral" } }],
    });
    const viaResponses = identityOf("/v1/responses", { model: "a", instructions: SYSTEM.content, input: question });
    const viaItems = identityOf("/v1/responses", {
      model: "a",
      input: [SYSTEM, { type: "message", role: "user", content: [{ type: "input_text", text: question }] }],
    });
    const viaTokenize = identityOf("/tokenize", { messages: [SYSTEM, user(question)] });
    for (const other of [viaMessages, viaResponses, viaItems, viaTokenize]) {
      assert.deepEqual(other.hashes, viaChat.hashes);
    }
  });

  it("reads Anthropic tool results with pictures in them", () => {
    const turn = (data: string): object => ({
      model: "a",
      messages: [
        user(question),
        { role: "assistant", content: [{ type: "tool_use", id: "t", name: "look", input: { x: 1 } }] },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "t",
              content: [
                { type: "image", source: { type: "base64", data } },
                { type: "text", text: question },
              ],
            },
          ],
        },
      ],
    });
    const one = identityOf("/v1/messages", turn("A".repeat(50_000)));
    const two = identityOf("/v1/messages", turn("B".repeat(50_000)));
    assert.ok(one.promptBytes < 6000);
    const before = Math.floor(question.length / CHUNK_BYTES);
    assert.ok(sharedBlocks(one, two) >= before);
    assert.ok(sharedBlocks(one, two) < one.hashes.length);
  });

  it("reads documents with pictures in them", () => {
    const document = (title: string, data: string): object => ({
      model: "a",
      messages: [
        {
          role: "user",
          content: [
            { type: "document", title, source: { content: "x" }, content: [{ type: "image", source: { data } }] },
            { type: "text", text: question },
          ],
        },
      ],
    });
    const bodies = [document("one", "A"), document("two", "A"), document("one", "B")];
    const hashes = bodies.flatMap((body) => [...identityOf("/v1/messages", body).hashes]);
    assert.equal(new Set(hashes).size, hashes.length);
  });

  it("exists for every kind of prompt", () => {
    const text = prose(2000);
    const bodies: [path: string, body: object][] = [
      [COMPLETIONS, { model: "a", prompt: text }],
      [COMPLETIONS, { model: "a", prompt: [text, text] }],
      ["/v1/embeddings", { model: "a", input: text }],
      ["/v1/embeddings", { model: "a", input: [text] }],
      ["/v1/embeddings", { model: "a", messages: [user(text)] }],
      ["/tokenize", { prompt: text }],
      ["/tokenize", { content: text }],
      ["/score", { text_1: "x", text_2: [text] }],
      ["/v1/score", { queries: "x", documents: [text] }],
      ["/v1/rerank", { query: "x", documents: ["y", text] }],
      ["/pooling", { input: text }],
      ["/classify", { input: [text] }],
      ["/generate", { text }],
      ["/completion", { prompt: text }],
      ["/v1/messages/count_tokens", { model: "a", messages: [user(text)] }],
    ];
    for (const [path, body] of bodies) {
      const identity = identityOf(path, body);
      assert.equal(identity.unhashable, null, path);
      assert.ok(identity.hashes.length >= 3, path);
    }
  });

  it("is missing, for a reason, where there is nothing to hash", () => {
    const options = { bytesPerToken: 4, adapter: null, salt: null };
    const reason = (path: string, body: object): string | null => identityOf(path, body).unhashable;
    assert.equal(reason(CHAT, { model: "a" }), "no_prompt");
    assert.equal(reason(CHAT, { model: "a", messages: [] }), "no_prompt");
    assert.equal(reason(COMPLETIONS, { model: "a", prompt: null }), "no_prompt");
    assert.equal(reason("/v1/unknown", { model: "a", messages: [user("x")] }), "unsupported_api");
    for (const prompt of [[1, "x"], [1, -2], [1.5], [[1], "x"], [[1], [2.5]], [true], [null], ["x", 1]]) {
      assert.equal(reason(COMPLETIONS, { model: "a", prompt }), "malformed_prompt", JSON.stringify(prompt));
    }
    assert.equal(identityOf(COMPLETIONS, '{"model":"a","prompt":[01]}').unhashable, "malformed_prompt");
    const form = Buffer.from('--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nw\r\n--x--\r\n');
    const shape = readRequest("POST", "/v1/audio/transcriptions", "multipart/form-data; boundary=x", form);
    assert.equal(identify(shape, form, options).unhashable, "unsupported_api");
    assert.equal(identify(shape, form, options).promptTokens, 1500);
    // Its weight is guessed from the body.
    const body = bytesOf({ model: "a", prompt: [1.5], padding: "x".repeat(4000) });
    const guessed = identify(readRequest("POST", COMPLETIONS, "", body), body, options);
    assert.equal(guessed.promptTokens, Math.ceil(body.length / 4));
  });
});

describe("identity of token ids", () => {
  const ids = Array.from({ length: 1000 }, (_, index) => (index * 7919) % 128_000);

  it("is exact: blocks of a fixed number of tokens", () => {
    const identity = identityOf(COMPLETIONS, { model: "a", prompt: ids });
    assert.equal(identity.approximate, false);
    assert.equal(identity.promptTokens, 1000);
    assert.equal(identity.blockTokens, BLOCK_TOKENS);
    assert.equal(identity.hashes.length, Math.floor(1000 / BLOCK_TOKENS));
  });

  it("is the same through every API and in every spacing", () => {
    const one = identityOf(COMPLETIONS, { model: "a", prompt: ids });
    const others = [
      identityOf(COMPLETIONS, JSON.stringify({ model: "a", prompt: ids }, null, 1)),
      identityOf(COMPLETIONS, `{"model":"a","prompt":[ ${ids.join(" , ")} ]}`),
      identityOf(COMPLETIONS, { model: "a", prompt: [ids] }),
      identityOf("/generate", { input_ids: ids }),
      identityOf("/inference/v1/generate", { token_ids: ids }),
      identityOf("/detokenize", { tokens: ids }),
      identityOf("/v1/embeddings", { model: "a", input: ids }),
    ];
    for (const other of others) assert.deepEqual(other.hashes, one.hashes);
  });

  it("shares exactly the blocks before the first difference", () => {
    const first = identityOf(COMPLETIONS, { model: "a", prompt: ids });
    for (const place of [0, 63, 64, 500, 959]) {
      const other = identityOf(COMPLETIONS, { model: "a", prompt: ids.with(place, 5) });
      assert.equal(sharedBlocks(first, other), Math.floor(place / BLOCK_TOKENS));
    }
    assert.equal(sharedBlocks(first, identityOf(COMPLETIONS, { model: "a", prompt: ids }, { adapter: "x" })), 0);
  });

  it("is never that of a text", () => {
    const text = String.fromCharCode(...ids.slice(0, 999).map((id) => 32 + (id % 90)));
    const asText = identityOf(COMPLETIONS, { model: "a", prompt: text.replaceAll(/["\\]/g, "x") });
    const asIds = identityOf(COMPLETIONS, { model: "a", prompt: ids });
    assert.equal(new Set([...asText.hashes, ...asIds.hashes]).size, asText.hashes.length + asIds.hashes.length);
  });
});
