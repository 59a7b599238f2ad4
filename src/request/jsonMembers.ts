import { CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, QUOTE } from "./ascii.ts";
import { invalidJson } from "./invalidJson.ts";
import { isWord, MAX_JSON_DEPTH, skipSpace } from "./jsonBytes.ts";
import { stringEnd } from "./jsonString.ts";

/**
 * Walks the members of one object. After `next()` returned true, `value` is where the member's value starts; set `at`
 * to the value's end before the next `next()`. When it returns false, `at` is the position after the closing brace.
 */
export class Members {
  readonly #bytes: Buffer;
  /** Quotes of the key. */
  keyOpen = 0;
  keyClose = 0;
  value = 0;
  /** The comma before the member, -1 for the first. */
  comma = -1;
  at: number;
  #first = true;

  constructor(bytes: Buffer, openBrace: number, depth: number) {
    if (depth >= MAX_JSON_DEPTH) throw invalidJson(`more than ${MAX_JSON_DEPTH} levels`, openBrace);
    this.#bytes = bytes;
    this.at = openBrace + 1;
  }

  next(): boolean {
    const bytes = this.#bytes;
    let at = skipSpace(bytes, this.at);
    if (bytes[at] === CLOSE_BRACE) {
      this.at = at + 1;
      return false;
    }
    if (this.#first) this.#first = false;
    else {
      if (bytes[at] !== COMMA) throw invalidJson("',' or '}' was expected", at);
      this.comma = at;
      at = skipSpace(bytes, at + 1);
    }
    if (bytes[at] !== QUOTE) throw invalidJson("a key was expected", at);
    this.keyOpen = at;
    this.keyClose = stringEnd(bytes, at);
    at = skipSpace(bytes, this.keyClose + 1);
    if (bytes[at] !== COLON) throw invalidJson("':' was expected", at);
    this.value = skipSpace(bytes, at + 1);
    return true;
  }

  /** Whether the key is this ASCII word, as written (a key with escapes is no word). */
  keyIs(word: string): boolean {
    return isWord(this.#bytes, this.keyOpen + 1, this.keyClose, word);
  }
}

/** Walks the elements of one array, in the manner of `Members`; `at` is where the element starts. */
export class Elements {
  readonly #bytes: Buffer;
  at: number;
  count = 0;

  constructor(bytes: Buffer, openBracket: number, depth: number) {
    if (depth >= MAX_JSON_DEPTH) throw invalidJson(`more than ${MAX_JSON_DEPTH} levels`, openBracket);
    this.#bytes = bytes;
    this.at = openBracket + 1;
  }

  next(): boolean {
    const bytes = this.#bytes;
    let at = skipSpace(bytes, this.at);
    if (bytes[at] === CLOSE_BRACKET) {
      this.at = at + 1;
      return false;
    }
    if (this.count > 0) {
      if (bytes[at] !== COMMA) throw invalidJson("',' or ']' was expected", at);
      at = skipSpace(bytes, at + 1);
    }
    this.count++;
    this.at = at;
    return true;
  }
}
