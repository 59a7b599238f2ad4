import { readMessages } from "./chatRoute.ts";
import type { Exchange } from "./exchange.ts";
import { isTrue, missingField, stringField } from "./jsonBody.ts";
import { badRequest } from "./vllmError.ts";

/** `POST /tokenize`: the ids that the chat and completion routes use. */
export function answerTokenize(exchange: Exchange): void {
  const body = exchange.json();
  exchange.adapterOf(body);
  const prompt = stringField(body, "prompt");
  const { tokenizer } = exchange.context;
  const own = prompt === null ? exchange.chatPrompt(body, readMessages(body)) : tokenizer.encode(prompt);
  const tokens = exchange.context.faults.current.otherTokenizer ? own.map((token) => token + 1) : own;
  exchange.answerJson({
    count: tokens.length,
    max_model_len: exchange.context.options.maxModelTokens,
    tokens: Array.from(tokens),
    token_strs: isTrue(body["return_token_strs"]) ? Array.from(tokens, (token) => tokenizer.decode([token])) : null,
  });
}

/** `POST /detokenize` */
export function answerDetokenize(exchange: Exchange): void {
  const body = exchange.json();
  exchange.adapterOf(body);
  const { tokens } = body;
  if (tokens === undefined) throw missingField("tokens", body);
  if (!Array.isArray(tokens) || !tokens.every((token) => Number.isInteger(token) && token >= 0))
    throw badRequest("tokens must be a list of token ids.", "tokens");
  exchange.answerJson({ prompt: exchange.context.tokenizer.decode(tokens as number[]) });
}
