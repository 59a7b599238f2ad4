import type { Usage } from "#src/scheduler/outcome.ts";

const QUOTE = 34;
const BACKSLASH = 92;
const OPEN = 123;
const CLOSE = 125;

export const NO_USAGE: Usage = { promptTokens: null, cachedTokens: null, outputTokens: null };

/**
 * What an answer says it used, from (the end of) its text. Knows the usage of OpenAI's chats, completions, embeddings
 * and responses, of Anthropic's messages, SGLang's `meta_info` and llama.cpp's `timings`. The last one in the text
 * counts; what nobody states is null, never zero.
 */
export function readUsage(text: string): Usage {
  let usage = fromUsage(lastObject(text, '"usage"'));
  if (!complete(usage)) usage = merge(usage, fromUsage(lastObject(text, '"meta_info"')));
  return complete(usage) ? usage : merge(usage, fromTimings(text));
}

/** `preferred`, completed by `other` where it is silent. */
export function merge(preferred: Usage, other: Usage): Usage {
  return {
    promptTokens: preferred.promptTokens ?? other.promptTokens,
    cachedTokens: preferred.cachedTokens ?? other.cachedTokens,
    outputTokens: preferred.outputTokens ?? other.outputTokens,
  };
}

function complete(usage: Usage): boolean {
  return usage.promptTokens !== null && usage.cachedTokens !== null && usage.outputTokens !== null;
}

function fromUsage(usage: Record<string, unknown> | null): Usage {
  if (usage === null) return NO_USAGE;
  const outputTokens = count(usage["completion_tokens"]) ?? count(usage["output_tokens"]);
  const read = count(usage["cache_read_input_tokens"]);
  if (read !== null) {
    // Anthropic counts what came from the cache, and what was put there, beside `input_tokens`.
    const created = count(usage["cache_creation_input_tokens"]) ?? 0;
    const input = count(usage["input_tokens"]);
    return { promptTokens: input === null ? null : input + read + created, cachedTokens: read, outputTokens };
  }
  const details = object(usage["prompt_tokens_details"]) ?? object(usage["input_tokens_details"]);
  return {
    promptTokens: count(usage["prompt_tokens"]) ?? count(usage["input_tokens"]),
    cachedTokens: count(details?.["cached_tokens"]) ?? count(usage["cached_tokens"]),
    outputTokens,
  };
}

function fromTimings(text: string): Usage {
  const timings = lastObject(text, '"timings"');
  if (timings === null) return NO_USAGE;
  const cachedTokens = count(timings["cache_n"]);
  const computed = count(timings["prompt_n"]);
  return {
    promptTokens: computed === null ? null : computed + (cachedTokens ?? 0),
    cachedTokens,
    outputTokens: count(timings["predicted_n"]),
  };
}

/** The last `key: {…}` of the text; null if there is none, or if it is cut off. */
function lastObject(text: string, key: string): Record<string, unknown> | null {
  // Forwards, then from the back: `lastIndexOf` compares byte by byte.
  const found: number[] = [];
  for (let at = text.indexOf(key); at >= 0; at = text.indexOf(key, at + key.length)) found.push(at);
  for (const at of found.reverse()) {
    const opening = /^\s*:\s*\{/u.exec(text.slice(at + key.length, at + key.length + 16));
    if (opening === null) continue;
    const start = at + key.length + opening[0].length - 1;
    const end = objectEnd(text, start);
    if (end < 0) continue;
    try {
      return object(JSON.parse(text.slice(start, end)));
    } catch {
      continue;
    }
  }
  return null;
}

/** Position after the brace that closes the one at `start`, or -1. */
function objectEnd(text: string, start: number): number {
  let depth = 0;
  let inString = false;
  for (let i = start; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (inString) {
      if (char === BACKSLASH) i++;
      else if (char === QUOTE) inString = false;
    } else if (char === QUOTE) inString = true;
    else if (char === OPEN) depth++;
    else if (char === CLOSE && --depth === 0) return i + 1;
  }
  return -1;
}

function object(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
}

/** No context is near it; a count beyond would stay in sums for ever, and leave a key in debt that it never works off. */
const MAX_TOKENS = 1_000_000_000;

function count(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS ? value : null;
}
