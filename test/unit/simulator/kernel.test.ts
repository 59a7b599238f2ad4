import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { EventQueue } from "#src/simulator/kernel/eventQueue.ts";
import { runEvents } from "#src/simulator/kernel/runEvents.ts";
import { NOTHING } from "#src/simulator/kernel/simEvent.ts";
import type { SimEvent } from "#src/simulator/kernel/simEvent.ts";

interface Log {
  nowMs: number;
  readonly seen: string[];
}

function event(atMs: number, priority = 0, name = `${atMs}`, then: SimEvent<Log>[] = []): SimEvent<Log> {
  return {
    atMs,
    priority,
    handle(log) {
      log.seen.push(`${name}@${log.nowMs}`);
      return then;
    },
  };
}

describe("event queue", () => {
  it("gives events by time, then priority, then order of queueing", () => {
    const key = fc.record({ atMs: fc.nat(5), priority: fc.nat(2) });
    fc.assert(
      fc.property(fc.array(fc.tuple(key, fc.boolean()), { maxLength: 60 }), (plan) => {
        const queue = new EventQueue<Log>();
        const model: { atMs: number; priority: number; order: number; event: SimEvent<Log> }[] = [];
        const popBoth = (): void => {
          model.sort((a, b) => a.atMs - b.atMs || a.priority - b.priority || a.order - b.order);
          assert.equal(queue.pop(), model.shift()?.event ?? null);
        };
        plan.forEach(([{ atMs, priority }, alsoPop], order) => {
          const queued = event(atMs, priority);
          queue.push(queued);
          model.push({ atMs, priority, order, event: queued });
          if (alsoPop) popBoth();
        });
        while (model.length > 0) popBoth();
        assert.equal(queue.size, 0);
      }),
    );
  });

  it("refuses an event without a time", () => {
    assert.throws(() => new EventQueue<Log>().push(event(Number.NaN)), RangeError);
  });
});

describe("running events", () => {
  it("moves time to each event and queues what follows from it", () => {
    const queue = new EventQueue<Log>();
    const log: Log = { nowMs: 0, seen: [] };
    queue.push(event(5, 1, "late"));
    queue.push(event(2, 0, "first", [event(5, 0, "followed"), event(2, 0, "at once")]));
    assert.equal(runEvents(log, queue), 4);
    assert.deepEqual(log.seen, ["first@2", "at once@2", "followed@5", "late@5"]);
    assert.equal(NOTHING.length, 0);
  });
});
