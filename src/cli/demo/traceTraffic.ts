import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { z } from "zod";
import { SeededRandom } from "#src/determinism/random.ts";
import type { Traffic } from "./traffic.ts";
import { someText } from "./words.ts";

/** Mooncake's traces hash prompts in blocks of 512 tokens; the emulated tokenizer takes four bytes for a token. */
const BLOCK_TOKENS = 512;
const BYTES_PER_TOKEN = 4;
const MAX_ROWS = 1_000_000;

const Row = z.object({
  timestamp: z.number().nonnegative(),
  input_length: z.int().positive(),
  output_length: z.int().nonnegative(),
  hash_ids: z.array(z.int().nonnegative()),
});
type Row = z.infer<typeof Row>;

/** Reads a Mooncake trace (JSON lines). Throws with the line number of the first line that is not such a row. */
export async function readMooncakeTrace(path: string): Promise<Row[]> {
  const rows: Row[] = [];
  let lineNumber = 0;
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    lineNumber++;
    if (line.trim() === "") continue;
    if (rows.length >= MAX_ROWS) throw new Error(`${path}: more than ${MAX_ROWS} rows`);
    try {
      rows.push(Row.parse(JSON.parse(line)));
    } catch (cause) {
      throw new Error(
        `${path}:${lineNumber} is not a Mooncake trace row {timestamp, input_length, output_length, hash_ids}`,
        { cause },
      );
    }
  }
  if (rows.length === 0) throw new Error(`${path} holds no rows`);
  return rows.toSorted((a, b) => a.timestamp - b.timestamp);
}

/**
 * Chats whose prompts share prefixes exactly as the trace's hashes say: every hash id stands for one block of text.
 * `speed` 2 plays the trace twice as fast.
 */
export function traceTraffic(rows: readonly Row[], speed: number): Traffic {
  const firstMs = rows[0]?.timestamp ?? 0;
  let next = 0;
  return () => {
    const row = rows[next++];
    if (row === undefined) return null;
    const blocks = row.hash_ids.map((id) => someText(BLOCK_TOKENS * BYTES_PER_TOKEN, new SeededRandom(id + 1)));
    return {
      atMs: (row.timestamp - firstMs) / speed,
      kind: "trace",
      messages: [{ role: "user", content: blocks.join("").slice(0, row.input_length * BYTES_PER_TOKEN) }],
      maxTokens: Math.max(1, row.output_length),
    };
  };
}
