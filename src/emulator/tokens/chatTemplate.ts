import { textSeed } from "./blockHashes.ts";
import { END_OF_MESSAGE, PAD, START_OF_MESSAGE, TokenBuffer } from "./tokenBuffer.ts";

/** A message of a chat in any of the APIs: content is a string or a list of parts. */
export interface ChatMessage {
  readonly role: string;
  readonly content: unknown;
  /** Calls of tools and the like, which templates print as JSON. */
  readonly calls?: unknown;
}

/** What one picture takes in the prompt. */
const IMAGE_TOKENS = 256;

/** The tokens of a chat in the ChatML manner, ending where the assistant's answer begins. */
export function renderChat(messages: readonly ChatMessage[], tools: unknown, opensAnswer = true): Uint32Array {
  const buffer = new TokenBuffer();
  if (Array.isArray(tools) && tools.length > 0) addMessage(buffer, { role: "system", content: JSON.stringify(tools) });
  for (const message of messages) addMessage(buffer, message);
  if (opensAnswer) {
    buffer.add(START_OF_MESSAGE);
    buffer.addText("assistant");
    buffer.addText("\n");
  }
  return buffer.tokens;
}

function addMessage(buffer: TokenBuffer, message: ChatMessage): void {
  buffer.add(START_OF_MESSAGE);
  buffer.addText(message.role);
  buffer.addText("\n");
  if (typeof message.content === "string") buffer.addText(message.content);
  else if (Array.isArray(message.content)) for (const part of message.content) addPart(buffer, part);
  if (message.calls !== undefined && message.calls !== null) buffer.addText(JSON.stringify(message.calls));
  buffer.add(END_OF_MESSAGE);
  buffer.addText("\n");
}

function addPart(buffer: TokenBuffer, part: unknown): void {
  if (typeof part === "string") {
    buffer.addText(part);
    return;
  }
  const { type, text } = part as { type?: unknown; text?: unknown };
  if (typeof text === "string") {
    buffer.addText(text);
  } else if (typeof type === "string" && type.includes("image")) {
    // Placeholders alone would make all pictures one: the first says which it is.
    buffer.add(textSeed(JSON.stringify(part)));
    for (let pad = 1; pad < IMAGE_TOKENS; pad++) buffer.add(PAD);
  } else {
    buffer.addText(JSON.stringify(part));
  }
}
