import { z } from "zod";
import type { TraceRow } from "./traceRow.ts";

/**
 * Mooncake's traces: JSON lines `{timestamp, input_length, output_length, hash_ids}`, times in milliseconds, one hash id
 * for each block of 512 prompt tokens, a begun one included. https://github.com/kvcache-ai/Mooncake
 */
export const MOONCAKE_BLOCK_TOKENS = 512;
/** The published traces tell times in steps of three seconds. */
export const MOONCAKE_BUCKET_MS = 3_000;

const Row = z.object({
  timestamp: z.number().nonnegative(),
  input_length: z.int().positive(),
  output_length: z.int().nonnegative(),
  hash_ids: z.array(z.int().nonnegative()),
});

export function readMooncakeRow(json: unknown): TraceRow {
  const { timestamp, input_length, output_length, hash_ids } = Row.parse(json);
  return {
    atMs: timestamp,
    promptTokens: input_length,
    outputTokens: output_length,
    content: { ids: hash_ids, tokens: MOONCAKE_BLOCK_TOKENS },
    session: null,
  };
}
