import { SeededRandom } from "#src/determinism/random.ts";
import type { Trace } from "#src/simulator/traces/traceRow.ts";
import type { Content } from "#src/simulator/workload/content.ts";
import { openLoop } from "#src/simulator/workload/traceWorkload.ts";
import type { Traffic } from "./traffic.ts";
import { someText } from "./words.ts";

/** The emulated tokenizer takes four bytes for a token. */
const BYTES_PER_TOKEN = 4;
const ANYBODY = { classes: [], tenants: [], adapters: [] };

/**
 * Chats whose prompts share prefixes exactly as the trace says: every identity stands for a text of its own. `speed` 2
 * plays the trace twice as fast.
 */
export function traceTraffic(trace: Trace, speed: number, seed: number): Traffic {
  const workload = openLoop(trace, speed, ANYBODY, seed);
  return () => {
    const arrival = workload.next();
    if (arrival === null) return null;
    const { atMs, content, promptTokens, outputTokens } = arrival;
    return {
      atMs,
      kind: "trace",
      messages: [{ role: "user", content: textOf(content, promptTokens) }],
      maxTokens: Math.max(1, outputTokens),
    };
  };
}

function textOf({ ids, tokens }: Content, promptTokens: number): string {
  const runs: string[] = [];
  for (let at = 0; at < ids.length; at++) {
    const runTokens = typeof tokens === "number" ? tokens : tokens[at]!;
    runs.push(someText(runTokens * BYTES_PER_TOKEN, new SeededRandom(ids[at]! + 1)));
  }
  return runs.join("").slice(0, promptTokens * BYTES_PER_TOKEN);
}
