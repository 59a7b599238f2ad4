import type { Config } from "#src/config/schema.ts";
import { loadTokenizer, type TokenizerSource } from "#src/request/tokenizerSource.ts";
import { promptTokens } from "#src/request/tokens/promptTokens.ts";
import type { OwnTokenizer, Tokenizers } from "./tokenizers.ts";

/** The tokenizers of a configuration's models, each loaded once. */
export function modelTokenizers(models: Config["models"]): Tokenizers {
  const loaded = new Map<string, Promise<OwnTokenizer>>();
  return {
    async of(model) {
      const source = models[model]?.tokenizer;
      if (source === undefined) return null;
      const tokenizer = loaded.get(model) ?? load(source);
      loaded.set(model, tokenizer);
      return tokenizer;
    },
  };
}

async function load(source: TokenizerSource): Promise<OwnTokenizer> {
  const tokenizer = await loadTokenizer(source);
  const tokensOf = (api: "chat" | "completions", body: unknown): readonly number[] =>
    Array.from(promptTokens(api, JSON.stringify(body), tokenizer, new Date()).ids);
  return {
    prompt: (prompt) => tokensOf("completions", { prompt }),
    chat: (messages) => tokensOf("chat", { messages }),
  };
}
