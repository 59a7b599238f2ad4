import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { FAMILIES, recorded, tokenizerOf } from "./recordedFolder.ts";

/** Pieces that tokenizers stumble over where two of them meet. */
const FRAGMENTS = [
  ..."a|B|e\u0301|e\u0301x|ß|'s|'S|'ſ|'ll| |  |   |\t|\n|\n\n|\r\n|\u0085|\u00a0|\u3000|\ufeff|0|12|12345|½|日本語|각|हिन्दी|👍🏽".split(
    "|",
  ),
  ..."<|im_start|>|<|im_end|>|<|pad|>|<think>|<tool_call>|word_mark|<start_of_turn>|<bos>|<|begin|>|▁|▁▁|<|<0x41>|token| the".split(
    "|",
  ),
  "q\u0307\u0323",
  "ab".repeat(40),
  "x".repeat(90),
];
const awkwardText = fc.array(fc.constantFrom(...FRAGMENTS), { maxLength: 30 }).map((parts) => parts.join(""));

for (const family of FAMILIES) {
  describe(`the small tokenizer over ${family}`, () => {
    test("gives the ids that Hugging Face's tokenizers gives", async () => {
      const tokenizer = await tokenizerOf(family);
      for (const [text, ids] of recorded(`${family}/texts.json`) as [string, number[]][])
        assert.deepEqual([...tokenizer.encode(text, false)], ids, JSON.stringify(text));
    });

    test("puts the tokens of its post-processor around a text if asked", async () => {
      const tokenizer = await tokenizerOf(family);
      const [first, ...rest] = tokenizer.encode("the router", true);
      assert.deepEqual(rest, [...tokenizer.encode("the router", false)]);
      assert.deepEqual([first], [...tokenizer.encode(family === "bytes" ? "<|begin|>" : "<bos>", false)]);
    });

    test("gives the same ids whatever it remembers of other texts", async () => {
      const remembering = await tokenizerOf(family);
      const forgetful = await tokenizerOf(family, { cacheBytes: 0 });
      fc.assert(
        fc.property(awkwardText, awkwardText, awkwardText, (start, middle, end) => {
          // The second text begins as the first one, as turns of a conversation do.
          for (const text of [start + middle, start + end, start + middle + end])
            assert.deepEqual(remembering.encode(text, false), forgetful.encode(text, false));
        }),
        { numRuns: 150 },
      );
    });

    test("remembers in bounded memory", async () => {
      const tokenizer = await tokenizerOf(family, { cacheBytes: 100_000 });
      const mark = family === "bytes" ? "<|im_end|>" : "<end_of_turn>";
      let most = 0;
      for (let turn = 0; turn < 3000; turn++) {
        tokenizer.encode(`x${mark}message ${turn} ${"y".repeat(turn % 50)}${mark}`, false);
        most = Math.max(most, tokenizer.cacheBytes);
      }
      assert.ok(most <= 100_000 && most > 90_000, `${most}`);
      tokenizer.encode(`x${mark}${"long ".repeat(60_000)}`, false);
      assert.ok(tokenizer.cacheBytes <= 100_000, "what is larger than the bound is not kept");
    });
  });
}
