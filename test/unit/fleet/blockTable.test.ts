import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { BlockTable } from "#src/fleet/blockTable.ts";

describe("the block table", () => {
  it("finds what is held and nothing else, whatever it is told to guess", () => {
    // Few hashes that share halves, over more blocks than its first tables have room for.
    const action = fc.record({
      low: fc.nat(60),
      high: fc.nat(60),
      replica: fc.nat(3),
      mask: fc.constantFrom(0, 0, 1, 2, 5),
      guess: fc.nat(1030),
    });
    fc.assert(
      fc.property(fc.array(action, { minLength: 50, maxLength: 400 }), (actions) => {
        const table = new BlockTable(2 ** 12);
        const plain = new Map<string, Map<number, number>>();
        for (const { low, high, replica, mask, guess } of actions) {
          const key = `${low} ${high}`;
          const masks = plain.get(key) ?? new Map<number, number>();
          const known = table.find(low, high, guess);
          assert.equal(known !== 0, masks.size > 0);
          if (known === 0 && mask === 0) continue;
          const block = table.findOrAdd(low, high, guess);
          if (known !== 0) assert.equal(block, known);
          assert.deepEqual([table.low(block), table.high(block)], [low, high]);
          assert.equal(table.maskOf(block, replica), masks.get(replica) ?? 0);
          table.setMask(block, replica, mask);
          if (mask === 0) masks.delete(replica);
          else masks.set(replica, mask);
          if (masks.size > 0) plain.set(key, masks);
          else plain.delete(key);
        }
        assert.equal(table.size, plain.size);
        const slower = [...plain.values()].some((masks) => [...masks.values()].some((mask) => mask > 1));
        assert.equal(table.hasSlowerTiers, slower);
      }),
      { numRuns: 60 },
    );
  });

  it("grows to its bound and no further", () => {
    const table = new BlockTable(3_000);
    for (let at = 1; at <= 3_000; at++) table.setMask(table.findOrAdd(at, at ^ 0x5555), 0, 1);
    assert.equal(table.size, 3_000);
    assert.throws(() => table.findOrAdd(9_999, 1), RangeError);
    for (let at = 1; at <= 3_000; at++) assert.notEqual(table.find(at, at ^ 0x5555), 0);
    const { bytes } = table;
    for (let at = 1; at <= 3_000; at++) table.setMask(table.find(at, at ^ 0x5555), 0, 0);
    assert.equal(table.size, 0);
    for (let at = 1; at <= 3_000; at++) table.setMask(table.findOrAdd(at, 7), 1, 1);
    assert.equal(table.bytes, bytes);
  });
});
