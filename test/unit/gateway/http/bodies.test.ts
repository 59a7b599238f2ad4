import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BodyCollector } from "#src/gateway/http/bodyCollector.ts";
import { BodyPool } from "#src/gateway/http/bodyPool.ts";

const MIB = 1024 * 1024;

describe("BodyPool", () => {
  test("gives out what it was given, when it fits", () => {
    const pool = new BodyPool();
    const first = pool.take(200_000);
    assert.ok(first.length >= 200_000);
    pool.give(first);
    assert.equal(pool.take(150_000), first);
    assert.notEqual(pool.take(150_000), first);
    pool.give(first);
    assert.notEqual(pool.take(300_000), first);
  });

  test("what it keeps is bounded, and the largest are not kept at all", () => {
    const pool = new BodyPool();
    for (let i = 0; i < 200; i++) pool.give(Buffer.allocUnsafeSlow(MIB));
    assert.equal(pool.keptBytes, 64 * MIB);
    const other = new BodyPool();
    other.give(other.take(5 * MIB));
    assert.equal(other.keptBytes, 0);
  });
});

describe("BodyCollector", () => {
  test("gathers pieces, of known and of unknown length, and copies them", () => {
    for (const expected of [6, null]) {
      const collector = new BodyCollector(expected, 100, new BodyPool());
      const piece = Buffer.from("xabcx");
      assert.ok(collector.add(piece, 1, 4));
      piece.fill("-");
      assert.ok(collector.add(Buffer.from("def"), 0, 3));
      assert.equal(collector.body().toString(), "abcdef");
    }
  });

  test("one piece, and none", () => {
    const collector = new BodyCollector(3, 100, new BodyPool());
    assert.equal(collector.body().length, 0);
    collector.add(Buffer.from("abc"), 0, 3);
    assert.equal(collector.body().toString(), "abc");
  });

  test("says when it is too much", () => {
    const collector = new BodyCollector(null, 5, new BodyPool());
    assert.equal(collector.add(Buffer.from("abc"), 0, 3), true);
    assert.equal(collector.add(Buffer.from("def"), 0, 3), false);
  });

  test("released memory serves the next body, and only once", () => {
    const pool = new BodyPool();
    const collector = new BodyCollector(100_000, MIB, pool);
    collector.add(Buffer.alloc(50_000, "a"), 0, 50_000);
    collector.add(Buffer.alloc(50_000, "b"), 0, 50_000);
    assert.equal(collector.body().length, 100_000);
    collector.release();
    collector.release();
    assert.equal(pool.keptBytes, 131_072);
  });
});
