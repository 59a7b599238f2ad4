import { z } from "zod";
import type { TraceRow } from "./traceRow.ts";

/**
 * Alibaba Bailian's traces: JSON lines with times in seconds and one hash id for each block of 16 prompt tokens. A turn
 * names the chat that it follows; -1: none. https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon
 */
const BLOCK_TOKENS = 16;
const NO_PARENT = -1;

const Row = z.object({
  chat_id: z.int(),
  parent_chat_id: z.int(),
  timestamp: z.number().nonnegative(),
  input_length: z.int().positive(),
  output_length: z.int().nonnegative(),
  hash_ids: z.array(z.int().nonnegative()),
});

/** Reads rows in the file's order, and finds each one's conversation by its parent. */
export class BailianReader {
  readonly #rootOf = new Map<number, number>();

  read(json: unknown): TraceRow {
    const row = Row.parse(json);
    const parent = row.parent_chat_id === NO_PARENT ? row.chat_id : row.parent_chat_id;
    const root = this.#rootOf.get(parent) ?? parent;
    this.#rootOf.set(row.chat_id, root);
    return {
      atMs: row.timestamp * 1000,
      promptTokens: row.input_length,
      outputTokens: row.output_length,
      content: { ids: row.hash_ids, tokens: BLOCK_TOKENS },
      session: `chat-${root}`,
    };
  }
}
