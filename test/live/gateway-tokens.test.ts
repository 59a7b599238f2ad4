import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ConfigError } from "#src/config/configError.ts";
import { configFrom } from "#src/config/loadConfig.ts";
import { startRouter } from "#src/gateway/router.ts";
import { writeSmallTokenizer } from "../unit/emulator/smallTokenizer.ts";
import { MODEL, setUp, until, type Setup } from "./gatewaySetup.ts";

interface Message {
  readonly role: string;
  readonly content: unknown;
}

async function post(url: string, body: object): Promise<{ replica: string; cachedTokens: number; text: string }> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, max_tokens: 4, ...body }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const { usage } = JSON.parse(text) as { usage?: { prompt_tokens_details?: { cached_tokens?: number } } };
  const replica = answer.headers.get("x-kvasir-replica") ?? "";
  return { replica, cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0, text };
}

const long = (of: string): string => `${of}: ${"the old map and the new one ".repeat(60)}`;

describe("prompts known by the engine's own tokens", () => {
  let folder: string;
  let setup: Setup;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "kvasir-tokens-"));
    const tokenizer = await writeSmallTokenizer(join(folder, MODEL));
    setup = await setUp(
      [0, 1, 2].map(() => ({ tokenizer, kvEvents: {} })),
      { models: { [MODEL]: { tokenizer } } },
    );
    const { fleet } = setup.router;
    await until("all views are live", () =>
      fleet.replicas().every(({ index }) => fleet.index.view(index).state.state === "live"),
    );
  });
  after(async () => {
    await setup[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  async function fallbacks(reason: string): Promise<number> {
    const metrics = await (await fetch(`${setup.adminUrl}/metrics`)).text();
    return Number(new RegExp(`kvasir_text_identities_total\\{reason="${reason}"\\} (\\d+)`).exec(metrics)?.[1] ?? 0);
  }

  it("are found where somebody else's request left them: chats, completions, messages and responses", async () => {
    for (const [at, engine] of setup.engines.entries()) {
      const messages: Message[] = [
        { role: "system", content: long(`system ${at}`) },
        { role: "user", content: "can you see the map?" },
      ];
      const { host } = new URL(engine.url);
      const { fleet } = setup.router;
      const view = fleet.index.view(fleet.byId(host)!.index);
      const before = view.holders;
      await post(`${engine.url}/v1/chat/completions`, { messages });
      await until("its events have come", () => view.holders > before + 20);
      const [system, user] = messages;
      const inParts = { ...user!, content: [{ type: "text", text: user!.content }] };
      const rendered = `<|im_start|>system\n${String(system!.content)}<|im_end|>\n<|im_start|>user\n`;
      const ways: readonly [path: string, body: object][] = [
        ["/v1/chat/completions", { messages }],
        ["/v1/chat/completions", { messages: [system, inParts] }],
        ["/v1/completions", { prompt: `${rendered}all` }],
        ["/v1/messages", { system: system!.content, messages: [user] }],
        ["/v1/responses", { instructions: system!.content, input: user!.content, max_output_tokens: 4 }],
      ];
      for (const [path, body] of ways) {
        const { replica } = await post(`${setup.url}${path}`, body);
        const [decision] = setup.router.decisions.recent(1);
        assert.equal(replica, host, path);
        assert.ok(decision!.cachedTokens(decision!.chosen) > 300, `${path} predicts its hit`);
      }
    }
  });

  it("are predicted over the turns of conversations as engines report them", async () => {
    const talks = Array.from({ length: 5 }, (_, at): Message[] => [{ role: "user", content: long(`talk ${at}`) }]);
    let reported = 0;
    for (let turn = 0; turn < 4; turn++) {
      for (const messages of talks) {
        const { cachedTokens, text } = await post(`${setup.url}/v1/chat/completions`, { messages });
        const [decision] = setup.router.decisions.recent(1);
        assert.ok(Math.abs(decision!.cachedTokens(decision!.chosen) - cachedTokens) <= 16);
        reported += cachedTokens;
        const { choices } = JSON.parse(text) as { choices: [{ message: Message }] };
        messages.push(choices[0].message, { role: "user", content: "and now the two of you run for it" });
      }
    }
    assert.ok(reported > 5 * 3 * 250, `${reported} tokens were cached`);
  });

  it("or else by their text, and it is counted why", async () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
    const messages = [{ role: "user", content: [{ type: "text", text: long("what is this") }, image] }];
    const before = await fallbacks("media");
    await post(`${setup.url}/v1/chat/completions`, { messages });
    assert.equal(await fallbacks("media"), before + 1);
    assert.equal(await fallbacks("tokenizer_failed"), 0);
    assert.equal(await fallbacks("overloaded"), 0);
  });

  it("need a tokenizer that can be used: else the configuration is refused", async () => {
    const broken = join(folder, "broken");
    await writeSmallTokenizer(broken);
    await writeFile(join(broken, "tokenizer.json"), `{"model":{"type":"Unigram"}}`);
    const config = (tokenizer: string) =>
      configFrom({
        engines: setup.engines.map(({ url }) => url),
        models: { [MODEL]: { tokenizer } },
        listen: { host: "127.0.0.1", port: 0 },
        admin: { port: 0 },
        log: { level: "silent" },
      });
    const named = (problem: unknown): boolean =>
      problem instanceof ConfigError && problem.message.startsWith(`models.${MODEL}.tokenizer: `);
    await assert.rejects(startRouter(config(broken)), named);
    await assert.rejects(setup.router.reload(config(broken)), named);
    await assert.rejects(setup.router.reload(config(join(folder, "nowhere"))), named);
    const { replica } = await post(`${setup.url}/v1/chat/completions`, {
      messages: [{ role: "user", content: "all" }],
    });
    assert.ok(replica, "the old configuration is in use");
  });
});
