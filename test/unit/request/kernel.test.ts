import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import xxhash from "xxhash-wasm";
import { type ChainHasher, digestChain, mainChain } from "#src/request/chainHash.ts";
import { stringEnd } from "#src/request/jsonString.ts";

const xx = await xxhash();

/** The chain by another implementation. */
function chainOf(bytes: Buffer, chunkBytes: number, seed: bigint): bigint[] {
  const hashes: bigint[] = [];
  for (let at = 0; at + chunkBytes <= bytes.length; at += chunkBytes) {
    hashes.push(xx.h64Raw(bytes.subarray(at, at + chunkBytes), hashes.at(-1) ?? seed));
  }
  return hashes;
}

function randomBytes(length: number, seed: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

function hashed(chain: ChainHasher, pieces: readonly Buffer[], chunkBytes: number, count: number): bigint[] {
  const hashes = new BigUint64Array(count);
  chain.begin(chunkBytes, hashes, null);
  for (const piece of pieces) chain.add(piece, 0, piece.length);
  chain.end();
  return [...hashes];
}

describe("ChainHasher", () => {
  it("is XXH64 of each chunk, seeded with the one before", () => {
    for (const chunkBytes of [128, 256, 512, 1024, 65_536]) {
      for (const length of [0, 1, chunkBytes - 1, chunkBytes, 3 * chunkBytes + 5, 300_000]) {
        const bytes = randomBytes(length, length + 1);
        const expected = chainOf(bytes, chunkBytes, 0n);
        assert.deepEqual(hashed(mainChain, [bytes], chunkBytes, expected.length), expected);
      }
    }
  });

  it("does not depend on how the stream is cut", () => {
    const bytes = randomBytes(200_000, 7);
    const expected = chainOf(bytes, 512, 0n);
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 20 }), (cuts) => {
        const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const pieces = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
        assert.deepEqual(hashed(mainChain, pieces, 512, expected.length), expected);
      }),
      { numRuns: 50 },
    );
  });

  it("begins with the digest of another stream", () => {
    const bytes = randomBytes(2048, 3);
    const chains = ["a", "b", "", "a\0"].map((root) => {
      digestChain.begin(512, new BigUint64Array(0), null);
      digestChain.add(Buffer.from(root), 0, root.length);
      digestChain.endDigest(root.length);
      const hashes = new BigUint64Array(4);
      mainChain.begin(512, hashes, digestChain);
      mainChain.add(bytes, 0, bytes.length);
      mainChain.end();
      return hashes;
    });
    assert.equal(new Set(chains.flatMap((hashes) => [...hashes])).size, 16);
  });

  it("digests streams of every length differently, zeros too", () => {
    const digests = new Set<bigint>();
    const zeros = Buffer.alloc(70_000);
    for (let length = 0; length < 1200; length++) digests.add(digestOf(zeros.subarray(0, length)));
    for (const length of [65_535, 65_536, 65_537, 70_000]) digests.add(digestOf(zeros.subarray(0, length)));
    assert.equal(digests.size, 1204);
  });
});

function digestOf(bytes: Buffer): bigint {
  digestChain.begin(512, new BigUint64Array(0), null);
  digestChain.add(bytes, 0, bytes.length);
  digestChain.endDigest(bytes.length);
  const seeded = new BigUint64Array(1);
  mainChain.begin(512, seeded, null);
  mainChain.addDigestOf(digestChain);
  mainChain.add(Buffer.alloc(504), 0, 504);
  mainChain.end();
  return seeded[0]!;
}

/** The closing quote, found one byte at a time. */
function closingQuote(bytes: Buffer): number {
  for (let at = 1; at < bytes.length; at++) {
    if (bytes[at] === 0x5c) at++;
    else if (bytes[at] === 0x22) return at;
  }
  return -1;
}

describe("stringEnd", () => {
  const piece = fc.oneof(
    fc.constantFrom("\\", "\\\\", '\\"', "\\\\\\", '"', "\\n", "x", "é", "\\".repeat(1023), "\\".repeat(1024)),
    fc.nat(3000).map((length) => "y".repeat(length)),
    fc.nat(40).map((length) => "\\\\".repeat(length)),
  );

  it("agrees with a walk byte by byte", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const bytes = Buffer.from(`"${pieces.join("")}`);
        const expected = closingQuote(bytes);
        if (expected < 0) assert.throws(() => stringEnd(bytes, 0), /no end at byte 0/);
        else assert.equal(stringEnd(bytes, 0), expected);
      }),
      { numRuns: 3000 },
    );
  });

  it("finds the quote on either side of every piece's edge", () => {
    for (let before = 1000; before < 1100; before++) {
      for (const escape of ['\\"', '\\\\\\"', "\\\\"]) {
        const bytes = Buffer.from(`"\\"${"z".repeat(60)}\\"${"z".repeat(before)}${escape}${"z".repeat(before)}" "`);
        assert.equal(stringEnd(bytes, 0), closingQuote(bytes));
      }
    }
  });
});
