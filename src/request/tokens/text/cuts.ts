import { TokenizerError } from "../tokenizerError.ts";
import { type RawPattern, readPattern } from "./pattern.ts";

/** Cuts a text into words; the words joined are the text. */
export type Cut = (text: string) => readonly string[];

/** GPT-2's own, which a ByteLevel step uses unless it is told not to. */
const GPT2_WORDS =
  /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

export const cutGpt2: Cut = (text) => cutIsolated(text, GPT2_WORDS);

export const cutNumbers: Cut = (text) => cutIsolated(text, /\p{N}+/gu);
export const cutDigits: Cut = (text) => cutIsolated(text, /\p{N}/gu);

export interface RawSplit {
  readonly pattern?: RawPattern;
  readonly behavior?: string;
  readonly invert?: boolean;
}

/** Reads a `Split` step. @throws {TokenizerError} */
export function readSplit(raw: RawSplit): Cut {
  const pattern = readPattern(raw.pattern);
  const behavior = (raw.behavior ?? "Isolated").toLowerCase();
  // What matches and what does not are cut alike when each match is a word of its own.
  if (behavior === "isolated") return (text) => cutIsolated(text, pattern);
  if (behavior === "mergedwithprevious" && raw.invert !== true) return (text) => cutAfter(text, pattern);
  if (behavior === "mergedwithnext" && raw.invert !== true) return (text) => cutBefore(text, pattern);
  throw new TokenizerError(`a split with behaviour ${raw.behavior} is not supported`);
}

/** Every match is a word, and so is what stands between two matches. */
function cutIsolated(text: string, pattern: RegExp): readonly string[] {
  const matches = text.match(pattern);
  if (matches === null) return text === "" ? [] : [text];
  let matched = 0;
  for (const match of matches) matched += match.length;
  // The usual pattern matches every character, and then its matches are all.
  if (matched === text.length) return matches;
  const words: string[] = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > end) words.push(text.slice(end, match.index));
    if (match[0] !== "") words.push(match[0]);
    end = match.index + match[0].length;
  }
  if (end < text.length) words.push(text.slice(end));
  return words;
}

function cutAfter(text: string, pattern: RegExp): string[] {
  const words: string[] = [];
  let start = 0;
  for (const match of text.matchAll(pattern)) {
    const end = match.index + match[0].length;
    if (end > start) words.push(text.slice(start, end));
    start = end;
  }
  if (start < text.length) words.push(text.slice(start));
  return words;
}

function cutBefore(text: string, pattern: RegExp): string[] {
  const words: string[] = [];
  let start = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > start) words.push(text.slice(start, match.index));
    start = match.index;
  }
  if (start < text.length) words.push(text.slice(start));
  return words;
}
