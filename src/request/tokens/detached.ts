/**
 * A copy of a string. What V8 cuts out of a string keeps the whole of it alive: a cache of short pieces would hold every
 * prompt that one of them was cut from.
 */
export function detached(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le");
}
