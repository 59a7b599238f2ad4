import { TokenizerError } from "../tokenizerError.ts";
import type { TokenWriter } from "../tokenWriter.ts";
import type { BpeSpec } from "./bpeSpec.ts";
import { mergeSymbols } from "./merging.ts";
import type { WordModel } from "./wordModel.ts";

/** GPT-2's alphabet: printable bytes stand for themselves, the others for the code points from 256 on. */
const BYTE_CHARACTERS: readonly string[] = (() => {
  const characters: string[] = [];
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    characters.push(String.fromCharCode(printable ? byte : next++));
  }
  return characters;
})();

const encoder = new TextEncoder();

/** Byte-pair encoding over the bytes of UTF-8 (GPT-2, Llama 3, Qwen, DeepSeek). */
export class ByteLevelBpe implements WordModel {
  readonly #spec: BpeSpec;
  readonly #byteIds = new Int32Array(256);
  #bytes = new Uint8Array(1024);
  #symbols = new Int32Array(1024);

  constructor(spec: BpeSpec) {
    this.#spec = spec;
    BYTE_CHARACTERS.forEach((character, byte) => {
      const id = spec.vocab.get(character);
      if (id === undefined) throw new TokenizerError(`the vocabulary has no token for byte ${byte}`);
      this.#byteIds[byte] = id;
    });
  }

  encode(word: string, out: TokenWriter): void {
    if (this.#bytes.length < word.length * 3) {
      this.#bytes = new Uint8Array(word.length * 3);
      this.#symbols = new Int32Array(word.length * 3);
    }
    const { written } = encoder.encodeInto(word, this.#bytes);
    if (this.#spec.ignoreMerges) {
      let spelled = "";
      for (let i = 0; i < written; i++) spelled += BYTE_CHARACTERS[this.#bytes[i]!]!;
      const whole = this.#spec.vocab.get(spelled);
      if (whole !== undefined) {
        out.push(whole);
        return;
      }
    }
    for (let i = 0; i < written; i++) this.#symbols[i] = this.#byteIds[this.#bytes[i]!]!;
    mergeSymbols(this.#symbols, written, this.#spec.merges, out);
  }
}
