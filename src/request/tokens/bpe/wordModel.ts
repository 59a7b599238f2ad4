import type { TokenWriter } from "../tokenWriter.ts";

/** Makes tokens of one word, the piece between two cuts of the pre-tokenizer. */
export interface WordModel {
  encode(word: string, out: TokenWriter): void;
}
