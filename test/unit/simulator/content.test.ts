import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { chainHashes } from "#src/simulator/workload/content.ts";
import { tokensOf } from "#src/simulator/workload/tokens.ts";

const ANSWER = 999;

function chain(
  ids: readonly number[],
  tokens: readonly number[] | number,
  promptTokens: number,
  over: { outputTokens?: number; blockTokens?: number; root?: number; answerId?: number } = {},
): readonly bigint[] {
  const options = { promptTokens, outputTokens: 0, blockTokens: 16, root: 0, answerId: ANSWER, ...over };
  return [...chainHashes({ ids, tokens }, options)];
}

/** What stands at each token, spelled out: the run's identity and the place in it. */
function spelled(ids: readonly number[], tokens: readonly number[]): string[] {
  return ids.flatMap((id, at) => Array.from({ length: tokens[at]! }, (_, place) => `${id}.${place}`));
}

describe("made-up token ids", () => {
  it("are those of the runs", () => {
    const options = { promptTokens: 50, outputTokens: 20, answerId: 9 };
    const tokens = tokensOf({ ids: [1, 2], tokens: 30 }, options);
    assert.equal(tokens.length, 70);
    const next = tokensOf({ ids: [1, 2, 9, 3], tokens: [30, 20, 20, 30] }, { ...options, promptTokens: 100 });
    assert.deepEqual(next.subarray(0, 70), tokens);
    const other = tokensOf({ ids: [1, 4], tokens: 30 }, options);
    assert.deepEqual(other.subarray(0, 30), tokens.subarray(0, 30));
    assert.ok(other.subarray(30, 50).every((token, at) => token !== tokens[30 + at]));
    assert.ok(new Set(tokens).size > 65);
  });
});

describe("chains of block hashes", () => {
  it("are equal exactly as far as the prompts are", () => {
    const run = fc.record({ id: fc.nat(2), tokens: fc.integer({ min: 1, max: 40 }) });
    const runs = fc.array(run, { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(runs, runs, (left, right) => {
        const [a, b] = [left, right].map((each) => {
          const ids = each.map(({ id }) => id);
          const tokens = each.map((one) => one.tokens);
          const text = spelled(ids, tokens);
          return { text, hashes: chain(ids, tokens, text.length) };
        }) as [{ text: string[]; hashes: bigint[] }, { text: string[]; hashes: bigint[] }];
        for (let block = 0; block < Math.min(a.hashes.length, b.hashes.length); block++) {
          const end = 16 * (block + 1);
          const same = a.text.slice(0, end).join() === b.text.slice(0, end).join();
          assert.equal(a.hashes[block] === b.hashes[block], same, `block ${block}`);
        }
      }),
    );
  });

  it("of a conversation's next turn begin with those of its last prompt and answer", () => {
    const first = chain([1, 2], [100, 50], 150, { outputTokens: 30, answerId: 7 });
    const second = chain([1, 2, 7, 3], [100, 50, 30, 40], 220);
    assert.equal(first.length, 11);
    assert.deepEqual(second.slice(0, 11), first);
    assert.notEqual(second[12], first[11]);
  });

  it("split a trace's long blocks into an engine's short ones", () => {
    const ids = [4, 8, 15];
    const whole = chain(ids, 512, 1_200, { blockTokens: 512 });
    const split = chain(ids, 512, 1_200);
    assert.equal(whole.length, 2);
    assert.equal(split.length, 75);
    assert.deepEqual(split.slice(0, 64), chain([4, 8], 512, 1_024));
    assert.notEqual(split[64], chain([4, 8, 16], 512, 1_200)[64]);
  });

  it("differ with the adapter", () => {
    const [plain, adapted] = [0, 1].map((root) => chain([1], 64, 64, { root }));
    assert.ok(plain!.every((hash, at) => hash !== adapted![at]));
  });
});
