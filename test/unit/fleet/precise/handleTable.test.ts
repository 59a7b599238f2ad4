import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { DISK, GPU, HandleTable, HOST, TIERS } from "#src/fleet/precise/handleTable.ts";

describe("the table of an engine's hashes", () => {
  it("finds what was added and not removed, however full it is and however the hashes fall", () => {
    const action = fc.record({
      low: fc.nat(300),
      high: fc.constantFrom(0, 0, 1, 0xffff_ffff),
      remove: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.constantFrom(1, 3), fc.array(action, { maxLength: 500 }), (blocksEach, actions) => {
        const table = new HandleTable(blocksEach);
        const plain = new Map<string, number>();
        let block = 0;
        for (const { low, high, remove } of actions) {
          const key = `${low} ${high}`;
          const slot = table.find(low, high);
          assert.equal(slot >= 0, plain.has(key));
          if (slot >= 0 && remove) {
            table.removeCopy(slot, HOST);
            assert.ok(!table.hasCopies(slot));
            table.remove(slot);
            plain.delete(key);
          } else if (slot < 0) {
            const added = table.add(low, high, HOST);
            for (let part = 0; part < blocksEach; part++) table.setBlock(added, part, ++block);
            plain.set(key, block);
          }
        }
        assert.equal(table.size, plain.size);
        for (const [key, last] of plain) {
          const [low, high] = key.split(" ").map(Number);
          const slot = table.find(low!, high!);
          assert.equal(table.block(slot, blocksEach - 1), last);
          assert.deepEqual(
            TIERS.map((tier) => table.copies(slot, tier)),
            [0, 1, 0],
          );
        }
        assert.equal(table.allBlocks().length, plain.size * blocksEach);
        assert.deepEqual(
          [...table.allBlocks()],
          [...table.allBlocks()].toSorted((a, b) => b - a),
        );
      }),
      { numRuns: 100 },
    );
  });

  it("counts copies on each tier by itself, and says when it cannot count more", () => {
    const table = new HandleTable(1);
    const slot = table.add(1, 2, GPU);
    for (let copies = 1; copies < 255; copies++) assert.ok(table.addCopy(slot, GPU));
    assert.ok(!table.addCopy(slot, GPU));
    for (let copies = 0; copies < 15; copies++) assert.ok(table.addCopy(slot, DISK));
    assert.ok(!table.addCopy(slot, DISK));
    assert.deepEqual(
      TIERS.map((tier) => table.copies(slot, tier)),
      [255, 0, 15],
    );
    table.removeCopy(slot, GPU);
    assert.deepEqual(
      TIERS.map((tier) => table.copies(slot, tier)),
      [254, 0, 15],
    );
  });
});
