import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { MergeTable } from "#src/request/tokens/bpe/mergeTable.ts";
import { mergeSymbols } from "#src/request/tokens/bpe/merging.ts";
import { WordCache } from "#src/request/tokens/bpe/wordCache.ts";
import { cutAtBarriers } from "#src/request/tokens/text/mergeBarriers.ts";
import { TokenWriter } from "#src/request/tokens/tokenWriter.ts";

type Merge = readonly [left: number, right: number, merged: number];

/** Merges over a small alphabet, each of tokens that there are already; the rank is the place in the list. */
const merges = fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 25 }).map((picks) => {
  const made: Merge[] = [];
  for (const [left, right] of picks) {
    const pair = [left % (4 + made.length), right % (4 + made.length)] as const;
    if (!made.some(([a, b]) => a === pair[0] && b === pair[1])) made.push([...pair, 4 + made.length]);
  }
  return made;
});

/** The definition: the best pair, the leftmost of equals, again and again. */
function expected(symbols: readonly number[], all: readonly Merge[]): number[] {
  let current = [...symbols];
  for (;;) {
    const ranks = current.slice(1).map((right, at) => all.findIndex(([a, b]) => a === current[at] && b === right));
    const possible = ranks.filter((rank) => rank >= 0);
    if (possible.length === 0) return current;
    const at = ranks.indexOf(Math.min(...possible));
    current = [...current.slice(0, at), all[Math.min(...possible)]![2], ...current.slice(at + 2)];
  }
}

test("short and long words are merged as defined", () => {
  const symbols = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 120 });
  fc.assert(
    fc.property(merges, symbols, (all, word) => {
      const table = new MergeTable(all.length);
      all.forEach(([left, right, merged], rank) => table.add(left, right, rank, merged));
      const out = new TokenWriter();
      mergeSymbols(Int32Array.from(word), word.length, table, out);
      assert.deepEqual([...out.copy()], expected(word, all));
    }),
    { numRuns: 300 },
  );
});

test("a word of a hundred thousand symbols is merged in the blink of an eye", () => {
  const table = new MergeTable(1);
  table.add(0, 0, 0, 1);
  const out = new TokenWriter();
  mergeSymbols(new Int32Array(100_001), 100_001, table, out);
  assert.equal(out.length, 50_001);
});

test("cuts of texts without pre-tokenizer are where no token joins the two characters", () => {
  const vocab = new Map(["a", "b", "▁", "▁a", "a▁", "\n\n", "b\nb"].map((token, id) => [token, id]));
  const cut = cutAtBarriers({ vocab });
  assert.deepEqual(cut("▁ab▁b▁a▁a\n\n\nb\nb"), ["▁ab", "▁b", "▁a▁a", "\n\n\nb\nb"]);
  assert.deepEqual(cut(""), []);
});

test("words are remembered, a bounded number of them", () => {
  let asked = 0;
  const words = new WordCache({ encode: (word, out) => (asked++, out.push(word.length)) }, 100);
  const out = new TokenWriter();
  for (let round = 0; round < 2; round++) for (let n = 1; n <= 40; n++) words.encode("w".repeat(n), out);
  assert.equal(asked, 40);
  for (let n = 0; n < 1000; n++) words.encode(`word ${n}`, out);
  assert.ok(words.size <= 100, `${words.size}`);
  const before = asked;
  words.encode("x".repeat(500), out);
  words.encode("x".repeat(500), out);
  assert.equal(asked, before + 2, "very long words are not kept");
});
