import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { blockHashes } from "#src/emulator/tokens/blockHashes.ts";
import { renderChat } from "#src/emulator/tokens/chatTemplate.ts";
import { drawAnswerTokens } from "#src/emulator/tokens/outputLength.ts";
import { AnswerWords } from "#src/emulator/tokens/answerWords.ts";
import { FOUR_BYTE_TOKENIZER } from "#src/emulator/tokens/engineTokenizer.ts";
import { detokenize, tokenizeText } from "#src/emulator/tokens/tokenBuffer.ts";

const NO_SEED = { adapter: null, salt: null };

describe("tokens", () => {
  it("are four bytes each and can be turned back into their text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (raw) => {
        // Trailing zero bytes are the one thing that a token cannot hold.
        const text = raw.replaceAll("\0", "");
        const tokens = tokenizeText(text);
        assert.equal(tokens.length, Math.ceil(Buffer.byteLength(text) / 4));
        assert.equal(detokenize(tokens), text);
      }),
    );
  });

  it("of an answer sent back in a chat are those that were generated", () => {
    const question = { role: "user", content: "what? 🙂" };
    const prompt = renderChat([question], undefined);
    const answer = answers.text(7, 30);
    const next = renderChat([question, { role: "assistant", content: answer }, question], undefined);
    assert.deepEqual(next.subarray(0, prompt.length + 30), Uint32Array.of(...prompt, ...tokenizeText(answer)));
  });

  it("of a chat tell roles, pictures and tools apart", () => {
    const prompts = [
      renderChat([{ role: "user", content: "hi" }], undefined),
      renderChat([{ role: "system", content: "hi" }], undefined),
      renderChat([{ role: "user", content: [{ type: "text", text: "hi" }, image("a")] }], undefined),
      renderChat([{ role: "user", content: [{ type: "text", text: "hi" }, image("b")] }], undefined),
      renderChat([{ role: "user", content: "hi" }], [{ type: "function" }]),
      renderChat([{ role: "user", content: "hi", calls: [{ id: 1 }] }], undefined),
    ];
    assert.equal(new Set(prompts.map((prompt) => prompt.join())).size, prompts.length);
    const parts = renderChat([{ role: "user", content: [{ type: "text", text: "hi" }] }], undefined);
    assert.deepEqual(parts, prompts[0]);
  });
});

function image(name: string): unknown {
  return { type: "image_url", image_url: { url: `http://pictures/${name}` } };
}

describe("block hashes", () => {
  it("agree exactly as far as the tokens do", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(), { minLength: 1, maxLength: 60 }),
        fc.nat({ max: 59 }),
        fc.constantFrom(1, 4, 16),
        (list, changed, blockTokens) => {
          const tokens = Uint32Array.from(list);
          const other = Uint32Array.from(list);
          const at = changed % tokens.length;
          other[at] = (other[at] ?? 0) ^ 1;
          const [one, two] = [tokens, other].map((each) => blockHashes(each, blockTokens, NO_SEED));
          assert.equal(one?.length, Math.floor(tokens.length / blockTokens));
          one?.forEach((hash, block) => assert.equal(hash === two?.[block], (block + 1) * blockTokens <= at));
        },
      ),
    );
  });

  it("differ by adapter and salt from the first block on, and no two blocks of many are equal", () => {
    const tokens = Uint32Array.from({ length: 160_000 }, (_, at) => at >>> 4);
    const seeds = [NO_SEED, { adapter: "a", salt: null }, { adapter: null, salt: "a" }, { adapter: "b", salt: null }];
    const all = seeds.flatMap((seed) => [...blockHashes(tokens, 16, seed)]);
    assert.equal(new Set(all).size, all.length);
  });
});

const { answers } = FOUR_BYTE_TOKENIZER;

describe("answers", () => {
  it("are made of words that are one token, and need some", () => {
    const few = new AnswerWords((text) => (text.includes("a") ? text.length : null));
    for (let index = 0; index < 50; index++) assert.match(few.token(3, index).text, /a/);
    assert.throws(() => new AnswerWords((text) => (text === " the" ? 1 : null)), /too few/);
  });

  it("are the same for the same seed, four bytes a token, and vary", () => {
    for (let seed = 0; seed < 50; seed++) {
      const pieces = Array.from({ length: 40 }, (_, index) => answers.token(seed, index).text);
      assert.equal(pieces.join(""), answers.text(seed, 40));
      for (const piece of pieces) assert.equal(Buffer.byteLength(piece), 4);
      assert.ok(new Set(pieces).size > 15);
    }
    assert.notEqual(answers.text(1, 10), answers.text(2, 10));
  });

  it("have lengths around their median, and none below one token", () => {
    const draw = (medianTokens: number, sigma: number): number[] =>
      Array.from({ length: 2001 }, (_, seed) => drawAnswerTokens({ medianTokens, sigma }, seed)).sort((a, b) => a - b);
    const lengths = draw(200, 0.7);
    const [median = 0, p90 = 0] = [lengths[1000], lengths[1800]];
    assert.ok(median > 180 && median < 220, `median ${median}`);
    // A log-normal's 90th percentile is at exp(1.28 sigma) medians.
    assert.ok(p90 > 420 && p90 < 580, `90th percentile ${p90}`);
    assert.ok((draw(1, 2)[0] ?? 0) >= 1);
    assert.deepEqual(new Set(draw(64, 0)), new Set([64]));
  });
});
