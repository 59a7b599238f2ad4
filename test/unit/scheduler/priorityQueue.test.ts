import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { PriorityQueue } from "#src/scheduler/priorityQueue.ts";
import type { Queued } from "#src/scheduler/priorityQueue.ts";

test("entries leave by key, then in the order they came, whatever was taken out of the middle", () => {
  const step = fc.oneof(
    fc.record({ push: fc.integer({ min: 0, max: 5 }) }),
    fc.record({ removeAt: fc.nat() }),
    fc.constant("pop" as const),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = new PriorityQueue<number>();
      let model: Queued<number>[] = [];
      let sequence = 0;
      const least = () => model.toSorted((a, b) => a.key - b.key || a.sequence - b.sequence)[0] ?? null;
      for (const action of steps) {
        if (action === "pop") {
          const first = queue.first;
          assert.equal(first, least());
          if (first !== null) queue.remove(first);
          model = model.filter((entry) => entry !== first);
        } else if ("push" in action) model.push(queue.push(sequence, action.push, sequence++));
        else if (model.length > 0) {
          const entry = model[action.removeAt % model.length]!;
          queue.remove(entry);
          queue.remove(entry);
          model = model.filter((other) => other !== entry);
        }
        assert.equal(queue.size, model.length);
      }
      assert.equal(queue.first, least());
    }),
  );
});
