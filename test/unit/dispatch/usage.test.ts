import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readUsage } from "#src/dispatch/usage.ts";

const usage = (promptTokens: number | null, cachedTokens: number | null, outputTokens: number | null) => ({
  promptTokens,
  cachedTokens,
  outputTokens,
});

describe("readUsage", () => {
  const cases: Record<string, [text: string, expected: ReturnType<typeof usage>]> = {
    "vLLM chat": [
      '{"id":"x","usage":{"prompt_tokens":100,"total_tokens":108,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":96,"created_cache_tokens":0}},"prompt_logprobs":null,"kv_transfer_params":null}',
      usage(100, 96, 8),
    ],
    "details null is not zero": [
      '{"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":null}}',
      usage(5, null, 2),
    ],
    "a cached zero is zero": [
      '{"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}',
      usage(5, 0, 2),
    ],
    embeddings: ['{"data":[],"usage":{"prompt_tokens":7,"total_tokens":7}}', usage(7, null, null)],
    responses: [
      '{"response":{"output":[],"usage":{"input_tokens":30,"input_tokens_details":{"cached_tokens":16},"output_tokens":4}}}',
      usage(30, 16, 4),
    ],
    "Anthropic: cached and created tokens stand beside input": [
      '{"type":"message_delta","usage":{"input_tokens":10,"cache_read_input_tokens":20,"cache_creation_input_tokens":5,"output_tokens":3}}',
      usage(35, 20, 3),
    ],
    "SGLang generate": [
      '{"text":"x","meta_info":{"prompt_tokens":12,"completion_tokens":3,"cached_tokens":8}}',
      usage(12, 8, 3),
    ],
    "llama.cpp: usage completed by timings": [
      '{"usage":{"completion_tokens":5,"prompt_tokens":40},"timings":{"cache_n":30,"prompt_n":10,"predicted_n":5}}',
      usage(40, 30, 5),
    ],
    "llama.cpp: timings alone": [
      '{"content":"x","timings":{"cache_n":30,"prompt_n":10,"predicted_n":5}}',
      usage(40, 30, 5),
    ],
    "the last of several, nulls passed over": [
      'data: {"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\ndata: {"usage" : { "prompt_tokens":1,"completion_tokens":2}}\n\ndata: {"usage":null}\n\n',
      usage(1, null, 2),
    ],
    "braces and quotes in strings": [
      '{"usage":{"note":"}\\"{","prompt_tokens":3,"completion_tokens":1}}',
      usage(3, null, 1),
    ],
    "cut off at its start": ['ns":4},"prompt_tokens":3}}', usage(null, null, null)],
    "cut off at its end": ['{"usage":{"prompt_tokens":3', usage(null, null, null)],
    "counts that no answer can have": [
      '{"usage":{"prompt_tokens":1e308,"completion_tokens":1000000001,"prompt_tokens_details":{"cached_tokens":0.5}}}',
      usage(null, null, null),
    ],
    "counts that are none": ['{"usage":{"prompt_tokens":"3","completion_tokens":-1}}', usage(null, null, null)],
    nothing: ["", usage(null, null, null)],
  };
  for (const [name, [text, expected]] of Object.entries(cases)) {
    test(name, () => assert.deepEqual(readUsage(text), expected));
  }
});
