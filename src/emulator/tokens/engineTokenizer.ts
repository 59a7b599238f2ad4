import { AnswerWords } from "./answerWords.ts";
import { renderChat, type ChatMessage } from "./chatTemplate.ts";
import { detokenize, tokenizeText } from "./tokenBuffer.ts";

/** A chat as it is to be put into one prompt. */
export interface ChatPrompt {
  readonly messages: readonly ChatMessage[];
  readonly tools: unknown;
  /** Whether the prompt ends where the assistant's answer begins; absent: yes. */
  readonly opensAnswer?: boolean;
  /** `chat_template_kwargs` of the request. */
  readonly templateArguments?: unknown;
}

/** How an engine turns text into tokens and back. */
export interface EngineTokenizer {
  encode(text: string): Uint32Array;
  chat(prompt: ChatPrompt): Uint32Array;
  decode(tokens: ArrayLike<number>): string;
  readonly answers: AnswerWords;
}

/** Stands in where no tokenizer is given: every four bytes of text are a token. */
export const FOUR_BYTE_TOKENIZER: EngineTokenizer = {
  encode: tokenizeText,
  chat: ({ messages, tools, opensAnswer = true }) => renderChat(messages, tools, opensAnswer),
  decode: detokenize,
  answers: new AnswerWords((text) => tokenizeText(text)[0] ?? null),
};
