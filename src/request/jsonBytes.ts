import { CLOSE_BRACE, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./ascii.ts";
import { invalidJson } from "./invalidJson.ts";
import { stringEnd } from "./jsonString.ts";
import type { PlanWriter } from "./prompt.ts";

/** Deeper than any schema in use, and well below what makes engines' own parsers overflow. */
export const MAX_JSON_DEPTH = 512;

/** What JSON allows, and the three that Python engines accept beside it. */
const LITERAL = /^(?:true|false|null|NaN|-?Infinity|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

/** Kinds of the brackets that are open, by depth. Shared: no walk is interrupted by another. */
const openers = new Uint8Array(MAX_JSON_DEPTH);

export function skipSpace(bytes: Buffer, at: number): number {
  let byte = bytes[at];
  while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = bytes[++at];
  return at;
}

/** End of a number, `true`, `null` and so on. */
export function literalEnd(bytes: Buffer, at: number): number {
  let end = at;
  let digits = true;
  for (;;) {
    const byte = bytes[end];
    if (byte === undefined || byte <= 0x20 || byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET) break;
    digits &&= isDigit(byte);
    end++;
  }
  if (digits && end > at && (bytes[at] !== 0x30 || end === at + 1)) return end;
  // Longer than any number that is meant seriously; the test below must not meet a megabyte of digits.
  if (end - at > 1024 || !LITERAL.test(bytes.toString("latin1", at, end)))
    throw invalidJson("a value was expected", at);
  return end;
}

/** Whether these bytes are this ASCII word. */
export function isWord(bytes: Buffer, start: number, end: number, word: string): boolean {
  if (end - start !== word.length) return false;
  for (let i = 0; i < word.length; i++) if (bytes[start + i] !== word.charCodeAt(i)) return false;
  return true;
}

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/**
 * Walks over the value at `at` (no white space before it) and returns the position after it. Brackets are matched;
 * what stands between them is left to the engine's parser. With a writer, the value's bytes go into its plan without
 * the white space between tokens.
 *
 * @param depth brackets already open around the value
 */
export function passValue(bytes: Buffer, start: number, depth: number, plan: PlanWriter | null): number {
  const first = bytes[start];
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) {
    const end = first === QUOTE ? stringEnd(bytes, start) + 1 : literalEnd(bytes, start);
    plan?.copy(start, end);
    return end;
  }
  let at = start;
  let runStart = start;
  let open = depth;
  do {
    const byte = bytes[at];
    if (byte === QUOTE) at = stringEnd(bytes, at) + 1;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (open >= MAX_JSON_DEPTH) throw invalidJson(`more than ${MAX_JSON_DEPTH} levels`, at);
      openers[open++] = byte;
      at++;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      // In ASCII both closing brackets stand two after their opening ones.
      if (openers[--open] !== byte - 2) throw invalidJson("a bracket does not match", at);
      at++;
    } else if (byte === undefined) {
      throw invalidJson("a bracket is not closed", start);
    } else if (plan !== null && byte <= 0x20) {
      plan.copy(runStart, at);
      while (bytes[at]! <= 0x20) at++;
      runStart = at;
    } else at++;
  } while (open > depth);
  plan?.copy(runStart, at);
  return at;
}
