import { TokenizerError } from "../tokenizerError.ts";
import type { TokenWriter } from "../tokenWriter.ts";
import type { BpeSpec } from "./bpeSpec.ts";
import { mergeSymbols } from "./merging.ts";
import type { WordModel } from "./wordModel.ts";

const encoder = new TextEncoder();

/** Byte-pair encoding over characters, unknown ones spelled in bytes (SentencePiece: Llama 2, Mistral, Gemma). */
export class CharacterBpe implements WordModel {
  readonly #spec: BpeSpec;
  /** Ids of `<0x00>` to `<0xFF>`. */
  readonly #byteIds: readonly number[];
  readonly #idOfCodePoint = new Map<number, number>();
  #symbols = new Int32Array(1024);

  /** @throws {TokenizerError} if it would have to say "unknown": two unknown characters may then count as one */
  constructor(spec: BpeSpec) {
    this.#spec = spec;
    const byteIds: number[] = [];
    for (let byte = 0; byte < 256; byte++) {
      const id = spec.vocab.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
      if (id === undefined || !spec.byteFallback)
        throw new TokenizerError("the vocabulary cannot spell unknown characters in bytes");
      byteIds.push(id);
    }
    this.#byteIds = byteIds;
    for (const [token, id] of spec.vocab) {
      const codePoint = token.codePointAt(0);
      if (codePoint !== undefined && token.length === (codePoint > 0xffff ? 2 : 1))
        this.#idOfCodePoint.set(codePoint, id);
    }
  }

  encode(word: string, out: TokenWriter): void {
    if (this.#spec.ignoreMerges) {
      const whole = this.#spec.vocab.get(word);
      if (whole !== undefined) {
        out.push(whole);
        return;
      }
    }
    // A character outside the vocabulary gives up to four symbols, and then takes two places or more in the string.
    if (this.#symbols.length < word.length * 3) this.#symbols = new Int32Array(word.length * 3);
    const symbols = this.#symbols;
    let count = 0;
    for (let i = 0; i < word.length; i++) {
      const codePoint = word.codePointAt(i)!;
      if (codePoint > 0xffff) i++;
      const id = this.#idOfCodePoint.get(codePoint);
      if (id !== undefined) symbols[count++] = id;
      else for (const byte of encoder.encode(String.fromCodePoint(codePoint))) symbols[count++] = this.#byteIds[byte]!;
    }
    mergeSymbols(symbols, count, this.#spec.merges, out);
  }
}
