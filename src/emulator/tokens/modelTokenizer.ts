import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Template } from "@huggingface/jinja";
import { Tokenizer } from "@huggingface/tokenizers";
import { z } from "zod";
import { AnswerWords } from "./answerWords.ts";
import type { ChatMessage } from "./chatTemplate.ts";
import type { ChatPrompt, EngineTokenizer } from "./engineTokenizer.ts";

const special = z.union([z.string(), z.object({ content: z.string() }).transform(({ content }) => content)]).nullish();

const TokenizerConfig = z.looseObject({
  bos_token: special,
  eos_token: special,
  chat_template: z
    .union([z.string(), z.array(z.object({ name: z.string(), template: z.string() }))])
    .nullish()
    .transform((value) => (Array.isArray(value) ? value.find(({ name }) => name === "default")?.template : value)),
});

/** Loaded ones by folder: they are large, and engines of one process mostly serve the same model. */
const LOADED = new Map<string, Promise<EngineTokenizer>>();

/**
 * The tokenizer in a folder with `tokenizer.json`, `tokenizer_config.json` and maybe `chat_template.jinja`, as models come.
 * Rejects where they cannot be read. Not by the router's own tokenizer, so that each can be held against the other.
 */
export function loadTokenizer(folder: string): Promise<EngineTokenizer> {
  const known = LOADED.get(folder);
  if (known !== undefined) return known;
  const loading = load(folder);
  LOADED.set(folder, loading);
  loading.catch(() => LOADED.delete(folder));
  return loading;
}

async function load(folder: string): Promise<EngineTokenizer> {
  const json = JSON.parse(await readFile(join(folder, "tokenizer.json"), "utf8")) as object;
  const config = TokenizerConfig.parse(JSON.parse(await readFile(join(folder, "tokenizer_config.json"), "utf8")));
  const file = await readFile(join(folder, "chat_template.jinja"), "utf8").catch(() => null);
  const source = file ?? config.chat_template ?? null;
  const template = source === null ? null : new Template(source);
  const tokenizer = new Tokenizer(json, config);
  const encode = (text: string, addsSpecial: boolean): Uint32Array =>
    Uint32Array.from(tokenizer.encode(text, { add_special_tokens: addsSpecial }).ids);
  return {
    encode: (text) => encode(text, true),
    chat: (prompt) => {
      if (template === null) throw new Error("The tokenizer has no chat template.");
      return encode(
        template.render({ ...variablesOf(prompt), bos_token: config.bos_token, eos_token: config.eos_token }),
        false,
      );
    },
    decode: (tokens) => tokenizer.decode(Array.from(tokens), { skip_special_tokens: false }),
    answers: new AnswerWords((text) => {
      const ids = encode(text, false);
      return ids.length === 1 ? (ids[0] ?? null) : null;
    }),
  };
}

function variablesOf({ messages, tools, opensAnswer = true, templateArguments }: ChatPrompt): Record<string, unknown> {
  return {
    messages: messages.map(variablesOfMessage),
    ...(Array.isArray(tools) && tools.length > 0 ? { tools } : {}),
    add_generation_prompt: opensAnswer,
    ...(typeof templateArguments === "object" ? templateArguments : {}),
  };
}

/** Most templates take text only: parts are joined, as vLLM does for them. */
function variablesOfMessage({ role, content, calls }: ChatMessage): Record<string, unknown> {
  const parts = Array.isArray(content) ? (content as { text?: unknown }[]) : null;
  const texts = parts?.flatMap(({ text }) => (typeof text === "string" ? [text] : []));
  return {
    role,
    content: texts === undefined ? content : texts.join("\n"),
    ...(calls === undefined || calls === null ? {} : { tool_calls: calls }),
  };
}
