import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { HolderSets, NOBODY } from "#src/fleet/holderSets.ts";

const USERS = 6;
const REPLICAS = [0, 1, 2, 31, 32, 70, 1000];

/** Bits by replica as the plain list of replicas they stand for. */
function listed(bits: Uint32Array): number[] {
  return [...bits].flatMap((word, at) =>
    Array.from({ length: 32 }, (_, bit) => bit)
      .filter((bit) => (word >>> bit) & 1)
      .map((bit) => at * 32 + bit),
  );
}

describe("interned sets of holders", () => {
  it("say what plain maps say, over any order of changes by several users, and leave nothing behind", () => {
    const change = fc.record({
      user: fc.nat(USERS - 1),
      replica: fc.constantFrom(...REPLICAS),
      mask: fc.nat(7),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 120 }), (changes) => {
        const sets = new HolderSets();
        const ids = Array.from({ length: USERS }, () => NOBODY);
        const plain = ids.map(() => new Map<number, number>());
        for (const { user, replica, mask } of changes) {
          const before = ids[user]!;
          const after = sets.with(before, replica, mask);
          sets.retain(after);
          sets.release(before);
          ids[user] = after;
          if (mask === 0) plain[user]!.delete(replica);
          else plain[user]!.set(replica, mask);

          for (const [at, id] of ids.entries()) {
            for (const one of REPLICAS) assert.equal(sets.maskOf(id, one), plain[at]!.get(one) ?? 0);
            const [gpu, host, any] = [new Uint32Array(32), new Uint32Array(32), new Uint32Array(32)];
            sets.addTo(id, gpu, host, any);
            const on = (bits: number) => REPLICAS.filter((one) => ((plain[at]!.get(one) ?? 0) & bits) !== 0);
            assert.deepEqual([listed(gpu), listed(host), listed(any)], [on(1), on(3), on(7)]);
          }
          // Equal content, one id.
          for (const [a, one] of plain.entries())
            for (const [b, other] of plain.entries()) {
              const equal = one.size === other.size && [...one].every(([key, value]) => other.get(key) === value);
              assert.equal(ids[a] === ids[b], equal);
            }
        }
        for (const id of ids) sets.release(id);
        assert.equal(sets.size, 0);
      }),
      { numRuns: 40 },
    );
  });

  it("use the room of those that are gone", () => {
    const sets = new HolderSets();
    const grow = (from: number): void => {
      let id: number = NOBODY;
      for (let replica = from; replica < from + 200; replica++) {
        const next = sets.with(id, replica, 1);
        sets.retain(next);
        sets.release(id);
        id = next;
      }
      sets.release(id);
    };
    grow(0);
    const { bytes } = sets;
    for (let round = 1; round < 50; round++) grow(round);
    assert.equal(sets.bytes, bytes);
    assert.equal(sets.size, 0);
  });
});
