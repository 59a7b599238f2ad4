import { ChatTemplate } from "./chat/chatTemplate.ts";
import type { ContentFormat } from "./chat/conversation.ts";
import { parsePythonJson } from "./pythonJson.ts";
import { PromptEncoder } from "./promptEncoder.ts";
import { namedTokens, readSurroundings, type Surroundings } from "./specialTokens.ts";
import { addedTokensOf, readTokenizerFiles, type TokenizerFiles } from "./tokenizerFiles.ts";
import { TokenizerError } from "./tokenizerError.ts";
import { TokenWriter } from "./tokenWriter.ts";

/** What an engine may be told beside its model's folder, and the router has to be told too. */
export interface ModelTokenizerOptions {
  /** The text of the engine's `--chat-template`, instead of the folder's. */
  readonly chatTemplate?: string | null;
  /** `--chat-template-content-format`; null: found out from the template. */
  readonly contentFormat?: ContentFormat | null;
  /** `--default-chat-template-kwargs`, as JSON. */
  readonly defaultTemplateArguments?: string | null;
  /** Bound on remembered pieces of prompts. */
  readonly cacheBytes?: number;
}

/** Kinds of models whose prompts vLLM writes by hand instead of from a template. */
const HAND_WRITTEN: ReadonlySet<string> = new Set(["gpt_oss", "deepseek_v32", "deepseek_v4", "kimi_k3", "inkling"]);

/** A model's tokenizer and chat template, from its folder. */
export class ModelTokenizer {
  readonly chatTemplate: ChatTemplate;
  /** Conversations are rendered by the template; else by code that only the engine has. */
  readonly rendersChats: boolean;
  readonly #encoder: PromptEncoder;
  readonly #surroundings: Surroundings;
  readonly #tokens = new TokenWriter();

  /** @throws {TokenizerError} for what cannot be done exactly */
  constructor(files: TokenizerFiles, options: ModelTokenizerOptions = {}) {
    this.#encoder = new PromptEncoder(files.tokenizer, addedTokensOf(files), options);
    this.#surroundings = readSurroundings(files.tokenizer);
    this.rendersChats = !HAND_WRITTEN.has(files.modelType ?? "");
    const templates = options.chatTemplate ? new Map([["default", options.chatTemplate]]) : files.chatTemplates;
    this.chatTemplate = new ChatTemplate({
      templates,
      specialTokens: namedTokens(files.config, files.specialTokens),
      contentFormat: options.contentFormat ?? null,
      defaultArguments: readArguments(options.defaultTemplateArguments ?? null),
    });
  }

  /** @throws {TokenizerError} */
  static async load(folder: string, options: ModelTokenizerOptions = {}): Promise<ModelTokenizer> {
    return new ModelTokenizer(await readTokenizerFiles(folder), options);
  }

  /** Bytes of remembered pieces. */
  get cacheBytes(): number {
    return this.#encoder.cacheBytes;
  }

  /** @param addSpecialTokens what the tokenizer puts around a text, such as the token that begins a prompt */
  encode(text: string, addSpecialTokens: boolean): Uint32Array<ArrayBuffer> {
    const tokens = this.#tokens;
    tokens.clear();
    if (addSpecialTokens) for (const id of this.#surroundings.before) tokens.push(id);
    this.#encoder.encode(text, tokens);
    if (addSpecialTokens) for (const id of this.#surroundings.after) tokens.push(id);
    return tokens.copy();
  }
}

function readArguments(json: string | null): Map<string, never> {
  const value = json === null ? new Map() : parsePythonJson(json);
  if (!(value instanceof Map)) throw new TokenizerError("the default template arguments are not an object");
  return value as Map<string, never>;
}
