import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { AddedToken } from "./text/addedTokens.ts";
import { TokenizerError } from "./tokenizerError.ts";

/** tokenizer.json, the parts that encoding needs. */
export interface TokenizerFile {
  readonly model: unknown;
  readonly normalizer: unknown;
  readonly pre_tokenizer: unknown;
  readonly post_processor: unknown;
  readonly added_tokens?: readonly RawAddedToken[];
}

interface RawAddedToken {
  readonly id: number;
  readonly content: string;
  readonly single_word?: boolean;
  readonly lstrip?: boolean;
  readonly rstrip?: boolean;
  readonly normalized?: boolean;
  readonly special?: boolean;
}

/** tokenizer_config.json, as transformers writes it. */
export interface TokenizerConfig {
  readonly tokenizer_class?: string;
  readonly chat_template?: string | readonly { readonly name: string; readonly template: string }[];
  readonly added_tokens_decoder?: Readonly<Record<string, Omit<RawAddedToken, "id">>>;
  readonly add_bos_token?: boolean | null;
  readonly add_eos_token?: boolean | null;
  readonly [key: string]: unknown;
}

export interface TokenizerFiles {
  readonly tokenizer: TokenizerFile;
  readonly config: TokenizerConfig;
  /** By name; `default` is what a chat without tools gets, and with tools where there is no `tool_use`. */
  readonly chatTemplates: ReadonlyMap<string, string>;
  /** special_tokens_map.json, where older models name their special tokens. */
  readonly specialTokens: Readonly<Record<string, unknown>>;
  /** `model_type` of config.json. */
  readonly modelType: string | null;
}

/**
 * Reads a model's folder: tokenizer.json, and where they are there tokenizer_config.json and chat_template.jinja (or
 * chat_template.json, or additional_chat_templates/).
 *
 * @throws {TokenizerError} if a file is missing or broken
 */
export async function readTokenizerFiles(folder: string): Promise<TokenizerFiles> {
  const tokenizer = await readJson(folder, "tokenizer.json");
  if (tokenizer === null) throw new TokenizerError(`there is no tokenizer.json in ${folder}`);
  const config = ((await readJson(folder, "tokenizer_config.json")) ?? {}) as TokenizerConfig;
  const modelType = ((await readJson(folder, "config.json")) ?? {})["model_type"];
  return {
    tokenizer: withClassRules(tokenizer as unknown as TokenizerFile, config),
    config,
    chatTemplates: await readChatTemplates(folder, config),
    specialTokens: (await readJson(folder, "special_tokens_map.json")) ?? {},
    modelType: typeof modelType === "string" ? modelType : null,
  };
}

/**
 * What transformers 5 makes of a tokenizer.json whose class is LlamaTokenizer: instead of the file's own normalizer and
 * pre-tokenizer it sets up this one, which treats leading spaces otherwise.
 */
function withClassRules(tokenizer: TokenizerFile, config: TokenizerConfig): TokenizerFile {
  const isLlama = config.tokenizer_class?.replace(/Fast$/, "") === "LlamaTokenizer";
  const inCharacters = (tokenizer.model as { byte_fallback?: unknown } | null)?.byte_fallback === true;
  if (!isLlama || !inCharacters) return tokenizer;
  const scheme = config["add_prefix_space"] === false ? "never" : config["legacy"] === true ? "always" : "first";
  const metaspace = { type: "Metaspace", replacement: "\u2581", prepend_scheme: scheme, split: false };
  return { ...tokenizer, normalizer: null, pre_tokenizer: metaspace };
}

/** All added tokens: those of tokenizer.json, and what only tokenizer_config.json knows, as transformers adds it. */
export function addedTokensOf({ tokenizer, config }: TokenizerFiles): AddedToken[] {
  const byContent = new Map<string, AddedToken>();
  for (const raw of tokenizer.added_tokens ?? []) byContent.set(raw.content, addedToken(raw.id, raw));
  for (const [id, raw] of Object.entries(config.added_tokens_decoder ?? {})) {
    if (!byContent.has(raw.content)) byContent.set(raw.content, addedToken(Number(id), raw));
  }
  return [...byContent.values()];
}

function addedToken(id: number, raw: Omit<RawAddedToken, "id">): AddedToken {
  return {
    id,
    content: raw.content,
    singleWord: raw.single_word ?? false,
    lstrip: raw.lstrip ?? false,
    rstrip: raw.rstrip ?? false,
    normalized: raw.normalized ?? raw.special !== true,
  };
}

async function readChatTemplates(folder: string, config: TokenizerConfig): Promise<Map<string, string>> {
  const templates = new Map<string, string>();
  const { chat_template: inConfig } = config;
  if (typeof inConfig === "string") templates.set("default", inConfig);
  else for (const { name, template } of inConfig ?? []) templates.set(name, template);
  const inJson = await readJson(folder, "chat_template.json");
  if (typeof inJson?.chat_template === "string") templates.set("default", inJson.chat_template);
  // A file of its own wins, as in transformers.
  const inFile = await readIfThere(folder, "chat_template.jinja");
  if (inFile !== null) templates.set("default", inFile);
  const toolUse = await readIfThere(folder, join("additional_chat_templates", "tool_use.jinja"));
  if (toolUse !== null) templates.set("tool_use", toolUse);
  return templates;
}

async function readIfThere(folder: string, name: string): Promise<string | null> {
  try {
    return await readFile(join(folder, name), "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new TokenizerError(`${name} in ${folder} cannot be read`, { cause });
  }
}

/** An object; null if there is no such file. */
async function readJson(folder: string, name: string): Promise<Record<string, unknown> | null> {
  const text = await readIfThere(folder, name);
  if (text === null) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TokenizerError(`${name} in ${folder} is not JSON`, { cause });
  }
  if (typeof value !== "object" || value === null) throw new TokenizerError(`${name} in ${folder} is not an object`);
  return value as Record<string, unknown>;
}
