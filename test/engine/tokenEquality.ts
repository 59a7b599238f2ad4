import assert from "node:assert/strict";
import { loadTokenizer } from "#src/request/tokenizerSource.ts";
import { promptTokens } from "#src/request/tokens/promptTokens.ts";
import type { Engine } from "./kit/engine.ts";
import { modelFolder } from "./kit/install.ts";
import { HIDDEN_CORPUS, PROMPT_CORPUS, type CorpusEntry } from "./promptCorpus.ts";
import { post, until } from "./routerSetup.ts";
import type { Truth } from "./truth.ts";

const PATHS = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
  sglang_generate: "/generate",
} as const;

interface Shown {
  readonly prompt_token_ids?: readonly number[];
  readonly choices?: readonly { readonly prompt_token_ids?: readonly number[] }[];
}

/** Compares the router's tokens with the engine's own over the corpus, and names what differs. */
export async function assertEqualTokens(engine: Engine, truth: Truth): Promise<void> {
  const tokenizer = await loadTokenizer({ folder: modelFolder(engine.model) });
  const own = ({ api, body }: CorpusEntry): number[] =>
    Array.from(promptTokens(api, JSON.stringify(body), tokenizer, new Date()).ids);
  const ask = (entry: CorpusEntry, more: object): Promise<Shown> =>
    post<Shown>(engine.url + PATHS[entry.api], { model: engine.model, temperature: 0, ...entry.body, ...more });
  const differing: string[] = [];
  for (const entry of PROMPT_CORPUS) {
    try {
      const answer = await ask(entry, { max_tokens: 1, return_token_ids: true });
      const shown = answer.prompt_token_ids ?? answer.choices?.[0]?.prompt_token_ids;
      assert.deepEqual(own(entry), shown);
    } catch (caught) {
      differing.push(`${entry.name}: ${caught instanceof Error ? caught.message.slice(0, 600) : String(caught)}`);
    }
  }
  for (const entry of HIDDEN_CORPUS) {
    try {
      await ask(entry, entry.api === "responses" ? { max_output_tokens: 1 } : { max_tokens: 1 });
      const ids = own(entry);
      const blocks = Math.floor(ids.length / engine.blockTokens);
      assert.ok(blocks >= 1, `it has ${ids.length} tokens only`);
      await until("its blocks are there", () => truth.heldOf(ids) === blocks);
    } catch (caught) {
      differing.push(`${entry.name}: ${caught instanceof Error ? caught.message.slice(0, 600) : String(caught)}`);
    }
  }
  assert.deepEqual(differing, []);
}
