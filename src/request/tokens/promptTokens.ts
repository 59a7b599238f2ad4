import type { ApiKind } from "../apiKind.ts";
import type { ChatPrompt } from "./chat/chatTemplate.ts";
import { asDict, flagOf, malformed } from "./chat/body.ts";
import { readChatRequest } from "./chat/chatRequest.ts";
import { readMessagesRequest } from "./chat/messagesRequest.ts";
import { readResponsesRequest } from "./chat/responsesRequest.ts";
import type { Dict, Value } from "./jinja/values.ts";
import type { ModelTokenizer } from "./modelTokenizer.ts";
import { parsePythonJson, PythonJsonError } from "./pythonJson.ts";
import { TokenFallback } from "./tokenFallback.ts";

/** What the engine will see of a request. */
export interface PromptTokens {
  /** Of the first prompt, where a request brings several. */
  readonly ids: Uint32Array<ArrayBuffer>;
  /** Of all its prompts. */
  readonly tokens: number;
}

/** APIs whose prompts can be told in token ids. */
export type TokenizedApi = "chat" | "completions" | "responses" | "messages" | "sglang_generate";

const TOKENIZED: ReadonlySet<string> = new Set<TokenizedApi>([
  "chat",
  "completions",
  "responses",
  "messages",
  "sglang_generate",
]);

export function isTokenized(api: ApiKind): api is TokenizedApi {
  return TOKENIZED.has(api);
}

/** Renders and tokenises the prompt of a request's body. @throws {TokenFallback} with the reason if it cannot be done */
export function promptTokens(api: TokenizedApi, body: string, tokenizer: ModelTokenizer, now: Date): PromptTokens {
  const dict = parseBody(body);
  if ((dict.get("truncate_prompt_tokens") ?? null) !== null) throw new TokenFallback("truncation");
  switch (api) {
    case "chat":
      // The template writes the tokens that begin a prompt, so the tokenizer does not, unless asked.
      return chatTokens(readChatRequest(dict), tokenizer, flagOf(dict, "add_special_tokens", false), now);
    case "messages":
      return chatTokens(readMessagesRequest(dict, tokenizer.chatTemplate.messagesSettings(now)), tokenizer, false, now);
    case "responses":
      // Here vLLM lets the tokenizer add them, even where the template has written them already.
      return chatTokens(readResponsesRequest(dict), tokenizer, true, now);
    case "completions":
      if ((dict.get("suffix") ?? null) !== null) throw new TokenFallback("suffix");
      if ((dict.get("prompt_embeds") ?? null) !== null) throw new TokenFallback("media");
      return textTokens(dict.get("prompt") ?? null, tokenizer, flagOf(dict, "add_special_tokens", true));
    case "sglang_generate":
      break;
  }
  for (const key of ["image_data", "video_data", "audio_data", "input_embeds"])
    if ((dict.get(key) ?? null) !== null) throw new TokenFallback("media");
  return textTokens(dict.get("text") ?? null, tokenizer, true);
}

function parseBody(body: string): Dict {
  try {
    return asDict(parsePythonJson(body), "the body");
  } catch (error) {
    if (error instanceof PythonJsonError) throw malformed(error.message);
    throw error;
  }
}

function chatTokens(prompt: ChatPrompt, tokenizer: ModelTokenizer, addSpecialTokens: boolean, now: Date): PromptTokens {
  if (!tokenizer.rendersChats) throw new TokenFallback("unsupported_renderer");
  return encoded(tokenizer.chatTemplate.render(prompt, now), tokenizer, addSpecialTokens);
}

/** A prompt in text, or a list of such. */
function textTokens(prompt: Value, tokenizer: ModelTokenizer, addSpecialTokens: boolean): PromptTokens {
  if (typeof prompt === "string") return encoded(prompt, tokenizer, addSpecialTokens);
  if (!Array.isArray(prompt)) throw malformed("the prompt is neither text nor a list");
  const all = prompt.map((one) => {
    if (typeof one !== "string") throw malformed("a prompt in the list is no text");
    return encoded(one, tokenizer, addSpecialTokens);
  });
  const [first] = all;
  if (first === undefined) throw malformed("the list of prompts is empty");
  return { ids: first.ids, tokens: all.reduce((sum, { tokens }) => sum + tokens, 0) };
}

function encoded(text: string, tokenizer: ModelTokenizer, addSpecialTokens: boolean): PromptTokens {
  // Half a surrogate pair is nothing that a tokenizer can be given.
  if (!text.isWellFormed()) throw malformed("the prompt is not well-formed Unicode");
  const ids = tokenizer.encode(text, addSpecialTokens);
  return { ids, tokens: ids.length };
}
