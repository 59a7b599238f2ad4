import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mixedTraffic } from "#src/cli/demo/mixedTraffic.ts";
import { readMooncakeTrace, traceTraffic } from "#src/cli/demo/traceTraffic.ts";
import { SeededRandom } from "#src/determinism/random.ts";

function withFile(text: string, use: (path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "kvasir-trace-"));
  const path = join(folder, "trace.jsonl");
  writeFileSync(path, text);
  return use(path).finally(() => rmSync(folder, { recursive: true }));
}

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

test("trace prompts share exactly the blocks that the hashes share", async () => {
  const rows = [
    { timestamp: 1000, input_length: 1024, output_length: 5, hash_ids: [0, 1] },
    { timestamp: 3000, input_length: 1024, output_length: 0, hash_ids: [0, 2] },
  ];
  await withFile(rows.map((row) => JSON.stringify(row)).join("\n"), async (path) => {
    const traffic = traceTraffic(await readMooncakeTrace(path), 2);
    const [first, second, end] = [traffic(), traffic(), traffic()];
    assert.equal(second?.atMs, 1000);
    assert.equal(second?.maxTokens, 1);
    assert.equal(end, null);
    const [a = "", b = ""] = [first?.messages[0]?.content, second?.messages[0]?.content];
    assert.equal(a.length, 4096);
    assert.equal(a.slice(0, 2048), b.slice(0, 2048));
    assert.notEqual(a.slice(2048, 2100), b.slice(2048, 2100));
  });
});

test("a bad trace row is named by its line", async () => {
  await withFile(
    '{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[]}\n{"timestamp":"x"}\n',
    async (path) => {
      await assert.rejects(readMooncakeTrace(path), /trace\.jsonl:2 is not a Mooncake trace row/);
    },
  );
});
