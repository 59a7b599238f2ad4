import { BACKSLASH, QUOTE } from "./ascii.ts";
import { invalidJson } from "./invalidJson.ts";
import { kernel, kernelMemory, STRING_WINDOW_AT, STRING_WINDOW_BYTES } from "./kernel.ts";

/**
 * Strings up to this many bytes are walked byte by byte; a native search costs about as much as 50 such steps, so it
 * pays only for longer ones.
 */
const NEAR_BYTES = 48;
/** First piece of a string that is copied to the kernel; each next piece is twice as long. */
const FIRST_PIECE_BYTES = 1024;

/** Position of the quote that closes the string opened at `open`. */
export function stringEnd(bytes: Buffer, open: number): number {
  let at = open + 1;
  for (const near = at + NEAR_BYTES; at < near; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
    else if (byte === undefined) throw invalidJson("a string has no end", open);
  }
  const quote = bytes.indexOf(QUOTE, at);
  if (quote < 0) throw invalidJson("a string has no end", open);
  if (bytes[quote - 1] !== BACKSLASH) return quote;
  return escapedStringEnd(bytes, open, at);
}

/**
 * The same for a string with escaped quotes: there are mostly many, each would end the native search, so the kernel
 * looks on. `from` is not in the middle of an escape.
 */
function escapedStringEnd(bytes: Buffer, open: number, from: number): number {
  let pieceBytes = FIRST_PIECE_BYTES;
  let at = from;
  while (at < bytes.length) {
    const end = Math.min(bytes.length, at + pieceBytes);
    bytes.copy(kernelMemory, STRING_WINDOW_AT, at, end);
    const windowEnd = STRING_WINDOW_AT + (end - at);
    const found = kernel.closingQuote(STRING_WINDOW_AT, windowEnd);
    if (found < windowEnd) return at + (found - STRING_WINDOW_AT);
    // An escape that the end of the piece cuts in two begins the next piece.
    let run = end;
    while (run > at && bytes[run - 1] === BACKSLASH) run--;
    const cut = (end - run) % 2;
    if (cut === 1 && end === bytes.length) break;
    at = end - cut;
    pieceBytes = Math.min(2 * pieceBytes, STRING_WINDOW_BYTES);
  }
  throw invalidJson("a string has no end", open);
}

/** Text of the string whose quotes are at `open` and `close`. */
export function stringText(bytes: Buffer, open: number, close: number): string {
  for (let at = open + 1; at < close; at++) {
    if (bytes[at] !== BACKSLASH) continue;
    try {
      return JSON.parse(bytes.toString("utf8", open, close + 1)) as string;
    } catch {
      throw invalidJson("a string holds a bad escape", open);
    }
  }
  return bytes.toString("utf8", open + 1, close);
}
