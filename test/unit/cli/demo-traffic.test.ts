import assert from "node:assert/strict";
import { test } from "node:test";
import { mixedTraffic } from "#src/cli/demo/mixedTraffic.ts";
import { traceTraffic } from "#src/cli/demo/traceTraffic.ts";
import { parseTrace } from "#src/simulator/traces/readTrace.ts";
import { SeededRandom } from "#src/determinism/random.ts";

test("mixed traffic is the same for the same seed, in order of time, and of three kinds", () => {
  const [one, two] = [mixedTraffic(20, new SeededRandom(7)), mixedTraffic(20, new SeededRandom(7))];
  const kinds = new Set<string>();
  let lastMs = 0;
  for (let i = 0; i < 200; i++) {
    const chat = one();
    assert.deepEqual(chat?.messages, two()?.messages);
    assert.ok(chat !== null && chat.atMs >= lastMs);
    lastMs = chat.atMs;
    kinds.add(chat.kind);
  }
  assert.equal(kinds.size, 3);
});

test("a conversation's next turn extends the one before", () => {
  const traffic = mixedTraffic(20, new SeededRandom(1));
  const seen: string[] = [];
  let extended = 0;
  for (let i = 0; i < 300; i++) {
    const chat = traffic();
    if (chat?.kind !== "conversation") continue;
    const prompt = JSON.stringify(chat.messages).slice(0, -1);
    if (seen.some((earlier) => prompt.startsWith(earlier))) extended++;
    chat.answered?.("fine");
    seen.push(prompt);
  }
  assert.ok(extended > 50, `${extended} turns extended an earlier one`);
});

test("trace prompts share exactly the blocks that the hashes share", () => {
  const rows = [
    { timestamp: 1000, input_length: 1024, output_length: 5, hash_ids: [0, 1] },
    { timestamp: 13000, input_length: 1024, output_length: 0, hash_ids: [0, 2] },
  ];
  const trace = parseTrace(rows.map((row) => JSON.stringify(row)).join("\n"), "trace.jsonl");
  const traffic = traceTraffic(trace, 2, 1);
  const [first, second, end] = [traffic(), traffic(), traffic()];
  assert.ok(second!.atMs - first!.atMs > 4_000 && second!.atMs <= 7_500, "twice as fast");
  assert.equal(second?.maxTokens, 1);
  assert.equal(end, null);
  const [a = "", b = ""] = [first?.messages[0]?.content, second?.messages[0]?.content];
  assert.equal(a.length, 4096);
  assert.equal(a.slice(0, 2048), b.slice(0, 2048));
  assert.notEqual(a.slice(2048, 2100), b.slice(2048, 2100));
});

test("prompts of a trace that tells nothing of their content are unlike each other", () => {
  const azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,100,5\n2023-11-16 18:15:47,100,5\n";
  const traffic = traceTraffic(parseTrace(azure, "azure.csv"), 1, 1);
  const [a, b] = [traffic(), traffic()];
  assert.equal(a?.messages[0]?.content.length, 400);
  assert.notEqual(a?.messages[0]?.content.slice(0, 100), b?.messages[0]?.content.slice(0, 100));
});
