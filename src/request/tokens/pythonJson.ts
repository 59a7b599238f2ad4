import { MAX_JSON_DEPTH } from "../jsonBytes.ts";
import { type Dict, PyFloat, type Value } from "./jinja/values.ts";
import { TokenFallback } from "./tokenFallback.ts";

/** Far more than a body of prompts has; what is built of it stays well below the memory of a thread. */
const MAX_VALUES = 1_000_000;

/** A text that Python's json.loads refuses. */
export class PythonJsonError extends Error {
  override readonly name = "PythonJsonError";
}

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\0-\x1f]/;
const WORDS: readonly (readonly [word: string, value: Value])[] = [
  ["true", true],
  ["false", false],
  ["null", null],
  ["NaN", new PyFloat(Number.NaN)],
  ["Infinity", new PyFloat(Number.POSITIVE_INFINITY)],
  ["-Infinity", new PyFloat(Number.NEGATIVE_INFINITY)],
];

/**
 * JSON as json.loads reads it: integers are told from floats and keep all their digits, objects keep the order of their
 * members, NaN and Infinity are numbers. JSON.parse does none of this.
 *
 * @throws {PythonJsonError}
 * @throws {TokenFallback} of more than a million values
 */
export function parsePythonJson(text: string): Value {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.end();
  return value;
}

class Reader {
  readonly #text: string;
  #at = 0;
  #values = 0;

  constructor(text: string) {
    this.#text = text;
  }

  end(): void {
    this.#space();
    if (this.#at < this.#text.length) throw this.#error();
  }

  value(depth: number): Value {
    if (depth > MAX_JSON_DEPTH) throw new PythonJsonError("nested too deep");
    if (++this.#values > MAX_VALUES) throw new TokenFallback("too_many_values");
    this.#space();
    switch (this.#text.charCodeAt(this.#at)) {
      case 0x22:
        return this.#string();
      case 0x7b:
        return this.#object(depth);
      case 0x5b:
        return this.#array(depth);
      default:
        return this.#scalar();
    }
  }

  #error(): PythonJsonError {
    return new PythonJsonError(`unexpected character at ${this.#at}`);
  }

  #space(): void {
    if (this.#text.charCodeAt(this.#at) > 0x20) return;
    SPACE.lastIndex = this.#at;
    SPACE.test(this.#text);
    this.#at = SPACE.lastIndex;
  }

  #skip(character: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #object(depth: number): Dict {
    this.#at++;
    const dict: Dict = new Map();
    if (this.#skip("}")) return dict;
    do {
      this.#space();
      if (this.#text[this.#at] !== '"') throw this.#error();
      const key = this.#string();
      if (!this.#skip(":")) throw this.#error();
      dict.set(key, this.value(depth + 1));
    } while (this.#skip(","));
    if (!this.#skip("}")) throw this.#error();
    return dict;
  }

  #array(depth: number): Value[] {
    this.#at++;
    const items: Value[] = [];
    if (this.#skip("]")) return items;
    do items.push(this.value(depth + 1));
    while (this.#skip(","));
    if (!this.#skip("]")) throw this.#error();
    return items;
  }

  #string(): string {
    const text = this.#text;
    const open = this.#at;
    let close = text.indexOf('"', open + 1);
    while (close >= 0 && isEscaped(text, close)) close = text.indexOf('"', close + 1);
    if (close < 0) throw new PythonJsonError(`the string at ${open} has no end`);
    this.#at = close + 1;
    const raw = text.slice(open + 1, close);
    if (CONTROL.test(raw)) throw new PythonJsonError(`a control character in the string at ${open}`);
    if (!raw.includes("\\")) return raw;
    try {
      return JSON.parse(text.slice(open, close + 1)) as string;
    } catch {
      throw new PythonJsonError(`a bad escape in the string at ${open}`);
    }
  }

  #scalar(): Value {
    NUMBER.lastIndex = this.#at;
    const number = NUMBER.exec(this.#text);
    if (number !== null) {
      const [digits, fraction, exponent] = number;
      this.#at += digits.length;
      if (fraction !== undefined || exponent !== undefined) return new PyFloat(Number(digits));
      const value = Number(digits);
      // Python's int has no negative zero.
      return Number.isSafeInteger(value) ? value + 0 : BigInt(digits);
    }
    for (const [word, value] of WORDS) {
      if (!this.#text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return value;
    }
    throw this.#error();
  }
}

/** Whether an odd number of backslashes stands before the quote. */
function isEscaped(text: string, quote: number): boolean {
  let run = quote;
  while (text.charCodeAt(run - 1) === 0x5c) run--;
  return (quote - run) % 2 === 1;
}
