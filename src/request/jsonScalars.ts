import { QUOTE } from "./ascii.ts";
import { isDigit, literalEnd } from "./jsonBytes.ts";
import { stringEnd, stringText } from "./jsonString.ts";

/** A name longer than this is none: it would only fill logs and maps. */
export const MAX_NAME_BYTES = 1024;

/** The number at `at`; null if something else stands there. */
export function readNumber(bytes: Buffer, at: number): number | null {
  const first = bytes[at];
  return isDigit(first) || first === 0x2d ? Number(bytes.toString("latin1", at, literalEnd(bytes, at))) : null;
}

/** The string at `at`; null if something else stands there. */
export function readString(bytes: Buffer, at: number): string | null {
  return bytes[at] === QUOTE ? stringText(bytes, at, stringEnd(bytes, at)) : null;
}

/** A string at `at` that can be a name: neither empty nor endless. */
export function readName(bytes: Buffer, at: number): string | null {
  if (bytes[at] !== QUOTE) return null;
  const close = stringEnd(bytes, at);
  return close > at + 1 && close - at <= MAX_NAME_BYTES ? stringText(bytes, at, close) : null;
}

/** Whether `true` stands at `at`. */
export function isTrue(bytes: Buffer, at: number): boolean {
  return bytes[at] === 0x74;
}

/** Whether `null` stands at `at` (and not `nothing`, which a parser refuses anyway). */
export function isNull(bytes: Buffer, at: number): boolean {
  return bytes[at] === 0x6e;
}
