import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import type { EmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { startEmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import type { KvStored } from "#src/engines/events/kvEvent.ts";
import { writeSmallTokenizer } from "../unit/emulator/smallTokenizer.ts";
import { follow } from "./emulatorEvents.ts";
import { emulate, until } from "./emulatorHelp.ts";

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "kvasir-tokenizer-"));
  t.after(() => rm(folder, { recursive: true }));
  return writeSmallTokenizer(folder);
}

async function post<Answer>(engine: EmulatedEngine, path: string, body: unknown): Promise<Answer> {
  const answer = await fetch(engine.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: engine.model, ...(body as object) }),
  });
  assert.equal(answer.status, 200);
  return (await answer.json()) as Answer;
}

interface Tokens {
  readonly tokens: number[];
}

interface Chat {
  readonly prompt_token_ids: number[];
  readonly choices: { message: { content: string }; token_ids: number[] }[];
  readonly usage: { prompt_tokens_details: { cached_tokens: number } };
}

describe("an emulated engine with a model's tokenizer", () => {
  it("reads text and chats as the model does, and gives text back", async (t) => {
    const engine = await emulate(t, { tokenizer: await folderOf(t) });
    const prompt = " the map and kïwi 你好\n";
    const { tokens } = await post<Tokens>(engine, "/tokenize", { prompt });
    assert.equal(tokens.length, 3 + Buffer.byteLength(" kïwi 你好\n"));
    assert.deepEqual(await post(engine, "/detokenize", { tokens }), { prompt });
    const messages = [
      {
        role: "user",
        content: [
          { type: "text", text: "see" },
          { type: "text", text: "me" },
        ],
      },
    ];
    const chat = await post<Tokens>(engine, "/tokenize", { messages });
    const { prompt: rendered } = await post<{ prompt: string }>(engine, "/detokenize", chat);
    assert.equal(rendered, "<|im_start|>user\nsee\nme<|im_end|>\n<|im_start|>assistant\n");
    const closed = await post<Tokens>(engine, "/tokenize", { messages, add_generation_prompt: false });
    assert.equal(closed.tokens.length, chat.tokens.length - "assistant\n".length - 1);
  });

  it("answers in tokens that come back in the next turn, and tells them as events", async (t) => {
    const engine = await emulate(t, { tokenizer: await folderOf(t), kvEvents: {}, blockTokens: 16 });
    const follower = follow(t, engine);
    await until(() => follower.told.includes("0 live"));
    const messages = [{ role: "user", content: "can one see the map" }];
    const first = await post<Chat>(engine, "/v1/chat/completions", {
      messages,
      max_tokens: 40,
      return_token_ids: true,
    });
    const [choice] = first.choices;
    assert.ok(choice !== undefined);
    const said = [...first.prompt_token_ids, ...choice.token_ids];
    messages.push({ role: "assistant", content: choice.message.content }, { role: "user", content: "and now" });
    const next = await post<Chat>(engine, "/v1/chat/completions", { messages, max_tokens: 1, return_token_ids: true });
    assert.deepEqual(next.prompt_token_ids.slice(0, said.length), said);
    // The last token of an answer is never fed back into the model, so its block was not full.
    assert.equal(next.usage.prompt_tokens_details.cached_tokens, Math.floor((said.length - 1) / 16) * 16);
    await until(() => follower.events.length >= 2);
    const stored = follower.events.flatMap((event) => [...(event as KvStored).tokenIds]);
    assert.deepEqual(stored, next.prompt_token_ids.slice(0, stored.length));
  });

  it("refuses a folder without one", async () => {
    await assert.rejects(startEmulatedEngine({ tokenizer: "/not/there" }), /tokenizer\.json/);
  });
});
