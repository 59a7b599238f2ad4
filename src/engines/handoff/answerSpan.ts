import { OPEN_BRACE, OPEN_BRACKET } from "#src/request/ascii.ts";
import { passValue, skipSpace } from "#src/request/jsonBytes.ts";
import { Elements, Members } from "#src/request/jsonMembers.ts";
import type { Span } from "#src/request/span.ts";

/**
 * Where a value stands in a JSON answer, by its path (names, or places in arrays). Its bytes can then be copied as they
 * are, numbers of 63 bits included. Null: it is not there, or the answer is no JSON.
 */
export function answerSpan(answer: Buffer, path: readonly (string | number)[]): Span | null {
  try {
    let at = skipSpace(answer, 0);
    for (const [depth, step] of path.entries()) {
      const value = typeof step === "string" ? member(answer, at, step, depth) : element(answer, at, step, depth);
      if (value === null) return null;
      at = value;
    }
    return { start: at, end: passValue(answer, at, path.length, null) };
  } catch {
    return null;
  }
}

/** The bytes of a value, if it is an object. */
export function answerObject(answer: Buffer, path: readonly (string | number)[]): Buffer | null {
  const span = answerSpan(answer, path);
  return span === null || answer[span.start] !== OPEN_BRACE ? null : answer.subarray(span.start, span.end);
}

function member(bytes: Buffer, at: number, name: string, depth: number): number | null {
  if (bytes[at] !== OPEN_BRACE) return null;
  const members = new Members(bytes, at, depth);
  let found: number | null = null;
  while (members.next()) {
    if (members.keyIs(name)) found = members.value;
    members.at = passValue(bytes, members.value, depth + 1, null);
  }
  return found;
}

function element(bytes: Buffer, at: number, place: number, depth: number): number | null {
  if (bytes[at] !== OPEN_BRACKET) return null;
  const elements = new Elements(bytes, at, depth);
  while (elements.next()) {
    if (elements.count === place + 1) return elements.at;
    elements.at = passValue(bytes, elements.at, depth + 1, null);
  }
  return null;
}
