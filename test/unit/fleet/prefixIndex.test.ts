import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import type { PlacedPrefix } from "#src/fleet/placedPrefix.ts";
import { PrefixIndex } from "#src/fleet/prefixIndex.ts";
import { chain } from "./samples.ts";

const PENDING_MS = 10_000;
const BLOCK_TOKENS = 16;

function held(index: PrefixIndex, hashes: readonly number[], ...replicas: readonly number[]): readonly number[] {
  const out = heldBlocks(Math.max(...replicas) + 1);
  index.match(
    chain(...hashes).hashes,
    replicas.map((one) => ({ index: one })),
    out,
  );
  return replicas.map((one) => out.gpu[one]!);
}

function confirmed(index: PrefixIndex, replica: number, hashes: readonly number[], nowMs = 0): PlacedPrefix {
  const placed = index.place(replica, chain(...hashes), nowMs);
  index.confirm(placed, nowMs);
  return placed;
}

/** What the index should answer, kept as plainly as possible: per replica its blocks, least recently used first. */
class NaiveIndex {
  readonly #replicas = new Map<number, Map<bigint, number>>();
  readonly #capacityBlocks: number;

  constructor(capacityBlocks: number) {
    this.#capacityBlocks = capacityBlocks;
  }

  /** The value is the time until which a block is pending; Infinity: confirmed. */
  blocksOf(replica: number): Map<bigint, number> {
    const known = this.#replicas.get(replica) ?? new Map<bigint, number>();
    this.#replicas.set(replica, known);
    return known;
  }

  use(replica: number, hashes: readonly bigint[], untilMs: number): void {
    const blocks = this.blocksOf(replica);
    for (const hash of hashes.slice(0, this.#capacityBlocks).reverse()) {
      const before = blocks.get(hash);
      blocks.delete(hash);
      blocks.set(hash, before === Number.POSITIVE_INFINITY ? before : untilMs);
    }
    while (blocks.size > this.#capacityBlocks) blocks.delete(blocks.keys().next().value ?? 0n);
  }

  confirm(replica: number, hashes: readonly bigint[]): void {
    const blocks = this.blocksOf(replica);
    for (const hash of hashes.slice(0, this.#capacityBlocks))
      if (blocks.has(hash)) blocks.set(hash, Number.POSITIVE_INFINITY);
  }

  expire(nowMs: number): void {
    for (const blocks of this.#replicas.values())
      for (const [hash, untilMs] of blocks) if (untilMs <= nowMs) blocks.delete(hash);
  }

  held(replica: number, hashes: readonly bigint[]): number {
    const blocks = this.blocksOf(replica);
    const missing = hashes.findIndex((hash) => !blocks.has(hash));
    return missing === -1 ? hashes.length : missing;
  }
}

const CAPACITY_BLOCKS = 12;
/** Chains over few roots, so that they share beginnings: block i of chain c is c's prefix of length i+1. */
const someChain = fc
  .array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 10 })
  .map((path) => path.map((_, at) => path.slice(0, at + 1).reduce((sum, digit) => sum * 4n + BigInt(digit) + 1n, 0n)));
const action = fc.record({
  kind: fc.constantFrom("place", "place", "placeAndConfirm", "clear", "wait"),
  replica: fc.constantFrom(0, 1, 2, 31, 32, 70),
  hashes: someChain,
});

describe("the prefix index", () => {
  it("answers as a naive model does, over any order of placing, confirming, expiring and clearing", () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const index = new PrefixIndex({ pendingMs: PENDING_MS });
        const naive = new NaiveIndex(CAPACITY_BLOCKS);
        let nowMs = 0;
        for (const replica of [0, 1, 2, 31, 32, 70]) index.setCapacity(replica, CAPACITY_BLOCKS * BLOCK_TOKENS);
        for (const { kind, replica, hashes } of actions) {
          nowMs += kind === "wait" ? 4_000 : 100;
          naive.expire(nowMs);
          index.expire(nowMs);
          if (kind === "clear") {
            index.clear(replica);
            naive.blocksOf(replica).clear();
          } else if (kind !== "wait") {
            const given = { hashes: BigUint64Array.from(hashes), blockTokens: BLOCK_TOKENS };
            const placed = index.place(replica, given, nowMs);
            assert.equal(placed.heldBlocks, Math.min(naive.held(replica, hashes), CAPACITY_BLOCKS));
            naive.use(replica, hashes, nowMs + PENDING_MS);
            if (kind === "placeAndConfirm") {
              index.confirm(placed, nowMs);
              naive.confirm(replica, hashes);
            }
          }
          const out = heldBlocks(71);
          const candidates = [0, 1, 2, 31, 32, 70].map((one) => ({ index: one }));
          index.match(BigUint64Array.from(hashes), candidates, out);
          for (const { index: one } of candidates) {
            assert.equal(out.gpu[one], naive.held(one, hashes), `replica ${one}`);
            assert.equal(index.heldBy(one), naive.blocksOf(one).size);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it("answers only for candidates, and zero for a replica it has never seen", () => {
    const index = new PrefixIndex();
    confirmed(index, 0, [1, 2, 3]);
    const out = heldBlocks(100);
    out.gpu[0] = 77;
    index.match(chain(1, 2, 3).hashes, [{ index: 99 }], out);
    assert.equal(out.gpu[99], 0);
    assert.equal(out.gpu[0], 77);
    index.match(chain().hashes, [{ index: 0 }], out);
    assert.equal(out.gpu[0], 0);
  });

  it("tells hashes apart that share one of their halves", () => {
    const index = new PrefixIndex();
    const hashes = BigUint64Array.of(0x1_0000_0002n);
    index.confirm(index.place(0, { hashes, blockTokens: 16 }, 0), 0);
    const out = heldBlocks(1);
    index.match(BigUint64Array.of(0x2_0000_0002n), [{ index: 0 }], out);
    assert.equal(out.gpu[0], 0);
    index.match(hashes, [{ index: 0 }], out);
    assert.equal(out.gpu[0], 1);
  });

  it("reads hashes that lie anywhere in a larger buffer", () => {
    const index = new PrefixIndex();
    const hashes = BigUint64Array.from([9n, 9n, 1n, 2n]).subarray(2);
    index.confirm(index.place(0, { hashes, blockTokens: 16 }, 0), 0);
    assert.deepEqual(held(index, [1, 2], 0), [2]);
  });

  it("counts a request just placed at once, so that its siblings follow", () => {
    const index = new PrefixIndex();
    index.place(3, chain(1, 2, 3), 0);
    assert.deepEqual(held(index, [1, 2, 3, 4], 2, 3), [0, 3]);
  });

  it("forgets what was placed and never began, and keeps what a sibling confirmed", () => {
    const index = new PrefixIndex({ pendingMs: PENDING_MS });
    index.place(0, chain(1, 2, 3), 0);
    const sibling = index.place(0, chain(1, 2, 9), 100);
    index.confirm(sibling, 200);
    index.expire(PENDING_MS + 100);
    assert.deepEqual(held(index, [1, 2, 3], 0), [2]);
    assert.deepEqual(held(index, [1, 2, 9], 0), [3]);
    assert.equal(index.pending, 0);
  });

  it("keeps what a later sibling still promises when the first one gives up", () => {
    const index = new PrefixIndex({ pendingMs: PENDING_MS });
    const first = index.place(0, chain(1, 2, 3), 0);
    index.place(0, chain(1, 2, 4), 1000);
    index.abandon(first);
    assert.deepEqual(held(index, [1, 2, 3], 0), [2]);
    assert.deepEqual(held(index, [1, 2, 4], 0), [3]);
  });

  it("never drops confirmed blocks because another request for them was cancelled", () => {
    const index = new PrefixIndex();
    confirmed(index, 0, [1, 2, 3]);
    index.abandon(index.place(0, chain(1, 2, 3, 4), 100));
    assert.deepEqual(held(index, [1, 2, 3, 4], 0), [3]);
  });

  it("bounds the requests that are pending: the oldest promises go", () => {
    const index = new PrefixIndex({ maxPending: 10 });
    for (let at = 0; at < 25; at++) index.place(0, chain(1000 + at), at);
    assert.equal(index.pending, 10);
    assert.equal(index.size, 10);
    assert.deepEqual(held(index, [1024], 0), [1]);
    assert.deepEqual(held(index, [1000], 0), [0]);
  });

  it("lets a chain's tail go before its root when the replica is full", () => {
    const index = new PrefixIndex();
    index.setCapacity(0, 6 * BLOCK_TOKENS);
    confirmed(index, 0, [1, 2, 3, 4]);
    confirmed(index, 0, [11, 12, 13, 14]);
    assert.deepEqual(held(index, [1, 2, 3, 4], 0), [2]);
    assert.deepEqual(held(index, [11, 12, 13, 14], 0), [4]);
  });

  it("enters no more of a prompt than the cache can hold", () => {
    const index = new PrefixIndex();
    index.setCapacity(0, 3 * BLOCK_TOKENS);
    confirmed(index, 0, [1, 2, 3, 4, 5]);
    assert.deepEqual(held(index, [1, 2, 3, 4, 5], 0), [3]);
  });

  it("holds nothing for a replica that caches no prefixes", () => {
    const index = new PrefixIndex();
    confirmed(index, 0, [1, 2, 3]);
    index.setCapacity(0, 0);
    confirmed(index, 0, [1, 2, 3]);
    assert.deepEqual(held(index, [1, 2, 3], 0), [0]);
    assert.equal(index.size, 0);
  });

  it("forgets a replica at once when it is cleared, and late news of before changes nothing", () => {
    const index = new PrefixIndex();
    const old = index.place(0, chain(1, 2, 3), 0);
    confirmed(index, 0, [7, 8]);
    confirmed(index, 1, [1, 2, 3]);
    index.clear(0);
    assert.deepEqual(held(index, [1, 2, 3], 0, 1), [0, 3]);
    assert.equal(index.heldBy(0), 0);
    index.place(0, chain(1), 1);
    index.confirm(old, 2);
    index.correct(old, 0);
    index.abandon(old);
    assert.deepEqual(held(index, [1, 2, 3], 0, 1), [1, 3]);
  });

  it("keeps what the engine found missing once, for that request has computed it, and drops it the second time", () => {
    const index = new PrefixIndex();
    const hashes = [1, 2, 3, 4, 5, 6, 7, 8];
    confirmed(index, 0, hashes);
    index.correct(confirmed(index, 0, hashes), 4);
    assert.equal(index.heldBy(0), 8);
    index.correct(confirmed(index, 0, hashes), 4);
    assert.equal(index.heldBy(0), 4);
  });

  it("takes a block out of doubt once the engine had it", () => {
    const index = new PrefixIndex();
    const hashes = [1, 2, 3, 4, 5, 6, 7, 8];
    confirmed(index, 0, hashes);
    index.correct(confirmed(index, 0, hashes), 2);
    index.correct(confirmed(index, 0, hashes), 8);
    index.correct(confirmed(index, 0, hashes), 2);
    assert.equal(index.heldBy(0), 8);
  });

  it("does not mind one block less, or more than it thought", () => {
    const index = new PrefixIndex();
    const hashes = [1, 2, 3, 4, 5, 6, 7, 8];
    confirmed(index, 0, hashes);
    for (let at = 0; at < 10; at++) index.correct(confirmed(index, 0, hashes), at % 2 === 0 ? 7 : 100);
    assert.equal(index.trust(0), 1);
    assert.deepEqual(held(index, hashes, 0), [8]);
  });

  it("trusts a replica less that reports hardly any of the predicted hits, and again once it does", () => {
    const index = new PrefixIndex();
    const hashes = Array.from({ length: 20 }, (_, at) => at + 1);
    for (let at = 0; at < 100; at++) index.correct(confirmed(index, 0, hashes), 0);
    confirmed(index, 0, hashes);
    assert.ok(held(index, hashes, 0)[0]! < 3);
    for (let at = 0; at < 200; at++) index.correct(confirmed(index, 0, hashes), 20);
    assert.deepEqual(held(index, hashes, 0), [20]);
  });

  it("stays as large as it is over a million unique prompts, within its bound", () => {
    const maxHolders = 20_000;
    const index = new PrefixIndex({ maxHolders, pendingMs: 1_000 });
    let plateau = 0;
    for (let at = 0; at < 1_000_000; at++) {
      const hashes = new BigUint64Array(2);
      new Uint32Array(hashes.buffer).set([at, Math.imul(at, 0x9e3779b1), at, Math.imul(at, 0x85ebca6b)]);
      const placed = index.place(at % 40, { hashes, blockTokens: BLOCK_TOKENS }, at / 10);
      if (at % 3 > 0) index.confirm(placed, at / 10);
      if (at === 200_000) plateau = index.bytes;
    }
    assert.ok(index.size <= maxHolders && index.size > maxHolders / 2, `${index.size} holders`);
    assert.ok(index.blocks <= index.size);
    assert.equal(index.bytes, plateau);
    assert.ok(index.bytes < 80 * maxHolders, `${index.bytes} bytes`);
  });

  it("takes from the fullest replica when the whole is full", () => {
    const index = new PrefixIndex({ maxHolders: 1024 });
    confirmed(index, 1, [7, 8, 9]);
    for (let at = 0; at < 3000; at++) confirmed(index, 0, [10_000 + at]);
    assert.deepEqual(held(index, [7, 8, 9], 1), [3]);
    assert.ok(index.size <= 1024);
  });
});
