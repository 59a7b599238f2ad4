const TOKEN_BYTES = 4;

/** Marks that a chat template puts around messages. No UTF-8 text packs to these: byte 0xff does not occur in it. */
export const START_OF_MESSAGE = 0xffffff01;
export const END_OF_MESSAGE = 0xffffff02;
export const PAD = 0xffffff03;

const SPECIAL_TEXT: ReadonlyMap<number, string> = new Map([
  [START_OF_MESSAGE, "<|im_start|>"],
  [END_OF_MESSAGE, "<|im_end|>"],
  [PAD, "<|image_pad|>"],
]);

/**
 * Collects the tokens of a prompt. A stand-in for a real tokenizer: each piece of text is cut into runs of four UTF-8
 * bytes, and a token's id is those bytes read as a little-endian number, so ids can be turned back into text. A piece
 * starts at a token boundary, so what follows a piece never changes the piece's own tokens.
 */
export class TokenBuffer {
  #tokens = new Uint32Array(256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get tokens(): Uint32Array {
    return this.#tokens.subarray(0, this.#length);
  }

  addText(text: string): void {
    const bytes = Buffer.from(text, "utf8");
    const whole = bytes.length - (bytes.length % TOKEN_BYTES);
    this.#reserve(bytes.length / TOKEN_BYTES + 1);
    for (let at = 0; at < whole; at += TOKEN_BYTES) this.#tokens[this.#length++] = bytes.readUInt32LE(at);
    if (whole < bytes.length) this.#tokens[this.#length++] = bytes.readUIntLE(whole, bytes.length - whole);
  }

  add(token: number): void {
    this.#reserve(1);
    this.#tokens[this.#length++] = token;
  }

  #reserve(more: number): void {
    const needed = this.#length + Math.ceil(more);
    if (needed <= this.#tokens.length) return;
    const grown = new Uint32Array(Math.max(needed, this.#tokens.length * 2));
    grown.set(this.#tokens.subarray(0, this.#length));
    this.#tokens = grown;
  }
}

export function tokenizeText(text: string): Uint32Array {
  const buffer = new TokenBuffer();
  buffer.addText(text);
  return buffer.tokens;
}

/** The text of tokens. Any id is allowed; bytes that are no UTF-8 become replacement characters, as with real models. */
export function detokenize(tokens: ArrayLike<number>): string {
  const parts: string[] = [];
  let bytes: number[] = [];
  for (const token of Array.from(tokens)) {
    const special = SPECIAL_TEXT.get(token);
    if (special !== undefined) {
      parts.push(Buffer.from(bytes).toString("utf8"), special);
      bytes = [];
      continue;
    }
    for (let rest = token; rest > 0; rest = Math.floor(rest / 256)) bytes.push(rest % 256);
  }
  parts.push(Buffer.from(bytes).toString("utf8"));
  return parts.join("");
}
