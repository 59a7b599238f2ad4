import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import xxhash from "xxhash-wasm";
import {
  chainRoot,
  hashTokenBlocks,
  keyedParent,
  MAX_BLOCK_TOKENS,
  tokenChain,
} from "#src/request/tokens/tokenChain.ts";

const hasher = await xxhash();

/** The definition, through another implementation of XXH64. */
function expectedChain(root: bigint, ids: readonly number[], blockTokens: number): bigint[] {
  const hashes: bigint[] = [];
  let seed = root;
  for (let at = 0; at + blockTokens <= ids.length; at += blockTokens) {
    const words = new Uint32Array(Math.ceil(blockTokens / 8) * 8);
    words.set(ids.slice(at, at + blockTokens));
    seed = hasher.create64(seed).update(new Uint8Array(words.buffer)).digest();
    hashes.push(seed);
  }
  return hashes;
}

const tokenIds = fc.array(fc.integer({ min: 0, max: 2 ** 31 }), { maxLength: 300 });

test("a chain is XXH64 over each block, seeded with the hash of the block before it", () => {
  fc.assert(
    fc.property(tokenIds, fc.integer({ min: 1, max: 70 }), (ids, blockTokens) => {
      const root = chainRoot("adapter", "salt", blockTokens);
      assert.deepEqual(
        [...tokenChain(root, Uint32Array.from(ids), blockTokens)],
        expectedChain(root, ids, blockTokens),
      );
    }),
  );
});

test("chains longer than the window are whole", () => {
  for (const blockTokens of [1, 16, 33, 4096, MAX_BLOCK_TOKENS]) {
    const ids = Array.from({ length: 3 * MAX_BLOCK_TOKENS + 5 }, (_, i) => (i * 2654435761) >>> 0);
    const root = chainRoot(null, null, blockTokens);
    assert.deepEqual([...tokenChain(root, Uint32Array.from(ids), blockTokens)], expectedChain(root, ids, blockTokens));
  }
});

test("blocks hashed in portions, as events tell them, give the chain of the whole prompt", () => {
  fc.assert(
    fc.property(tokenIds, fc.integer({ min: 1, max: 40 }), fc.integer({ min: 0, max: 20 }), (ids, blockTokens, cut) => {
      const root = chainRoot(null, null, blockTokens);
      const whole = tokenChain(root, Uint32Array.from(ids), blockTokens);
      const first = Math.min(cut, whole.length);
      const out = new BigUint64Array(whole.length);
      hashTokenBlocks(root, Uint32Array.from(ids.slice(0, first * blockTokens)), blockTokens, out);
      const parent = first === 0 ? root : out[first - 1]!;
      hashTokenBlocks(parent, Uint32Array.from(ids.slice(first * blockTokens)), blockTokens, out, first);
      assert.deepEqual(out, whole);
    }),
  );
});

test("adapter, salt, block size and media keep chains apart", () => {
  const roots = new Set<bigint>();
  for (const blockTokens of [16, 32]) {
    for (const adapter of [null, "a", "ab"])
      for (const salt of [null, "a", "b", "1:a"]) roots.add(chainRoot(adapter, salt, blockTokens));
  }
  assert.equal(roots.size, 2 * 3 * 4);
  assert.equal(chainRoot(null, null, 16), chainRoot("", "", 16), "engines tell the absence in both ways");
  const root = chainRoot(null, null, 16);
  assert.equal(new Set([root, keyedParent(root, "image-1"), keyedParent(root, "image-2")]).size, 3);
});

test("a block size that no engine has is refused", () => {
  for (const blockTokens of [0, -1, 1.5, MAX_BLOCK_TOKENS + 1, Number.NaN])
    assert.throws(() => hashTokenBlocks(0n, new Uint32Array(4), blockTokens, new BigUint64Array(4)), RangeError);
});
