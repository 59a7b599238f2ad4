import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { mean } from "#src/simulator/report/distribution.ts";
import type { Arrival } from "#src/simulator/workload/arrival.ts";
import { conversations } from "#src/simulator/workload/conversations.ts";
import { exponential, geometric, logNormal, zipf } from "#src/simulator/workload/draws.ts";
import { draw } from "#src/simulator/workload/mix.ts";
import { randomFor } from "#src/simulator/workload/seeds.ts";
import { SHAPES } from "#src/simulator/workload/shapes.ts";
import type { ShapeName } from "#src/simulator/workload/shapes.ts";

const NOBODY = { classes: [], tenants: [], adapters: [] };

/** All requests of a workload whose answers come at once. */
function played(shape: ShapeName, requests: number, seed = 1): Arrival[] {
  const workload = conversations(SHAPES[shape], { perSecond: 1, requests, senders: NOBODY, seed });
  const all: Arrival[] = [];
  for (let next = workload.next(); next !== null; next = workload.next()) {
    for (let turn: Arrival | undefined = next; turn !== undefined;) {
      all.push(turn);
      turn = workload.ended(turn, true, turn.atMs)[0];
    }
  }
  return all;
}

describe("made conversations", () => {
  it("grow turn by turn, each prompt beginning with the last prompt and its answer", () => {
    const bySession = Map.groupBy(played("chat", 500), ({ session }) => session);
    assert.ok(bySession.size > 50);
    for (const turns of bySession.values())
      for (const [at, turn] of turns.entries()) {
        const before = turns[at - 1];
        if (before === undefined) continue;
        const ids = [...Array.from(before.content.ids), before.answerId];
        assert.deepEqual(Array.from(turn.content.ids).slice(0, -1), ids);
        assert.ok(turn.promptTokens > before.promptTokens + before.outputTokens);
        assert.ok(turn.atMs > before.atMs);
      }
  });

  it("have the published means", () => {
    const chat = played("chat", 20_000);
    const turns = [...Map.groupBy(chat, ({ session }) => session).values()].map(({ length }) => length);
    assert.ok(Math.abs(mean(turns) / 5.75 - 1) < 0.05, `${mean(turns)} turns`);
    assert.ok(Math.abs(mean(chat.map(({ outputTokens }) => outputTokens)) / 338 - 1) < 0.05);
    const agent = played("agent", 20_000);
    const promptTokens = mean(agent.map((each) => each.promptTokens));
    assert.ok(Math.abs(promptTokens / 8_596 - 1) < 0.25, `${promptTokens} prompt tokens`);
  });

  it("are the same for the same seed, and end for whom is refused", () => {
    assert.deepEqual(played("agent", 50), played("agent", 50));
    assert.notDeepEqual(played("agent", 50), played("agent", 50, 2));
    const workload = conversations(SHAPES.chat, { perSecond: 1, requests: 10, senders: NOBODY, seed: 1 });
    assert.deepEqual(workload.ended(workload.next()!, false, 0), []);
  });
});

describe("draws", () => {
  const many = (one: () => number) => mean(Array.from({ length: 40_000 }, one));
  const random = randomFor(1, "draws");

  it("have the means they are asked for", () => {
    assert.ok(Math.abs(many(() => exponential(50, random)) / 50 - 1) < 0.03);
    assert.ok(Math.abs(many(() => geometric(6, random)) / 6 - 1) < 0.03);
    assert.ok(Math.abs(many(() => logNormal({ mean: 200, sigma: 0.8 }, random)) / 200 - 1) < 0.03);
    assert.equal(geometric(1, random), 1);
  });

  it("take the first most often", () => {
    const counts = [0, 0, 0];
    for (let at = 0; at < 11_000; at++) counts[zipf(3, random)]!++;
    assert.ok(Math.abs(counts[0]! / 6_000 - 1) < 0.05 && Math.abs(counts[2]! / 2_000 - 1) < 0.1, counts.join());
    const shares = [
      { name: "rare", weight: 0.1 },
      { name: "often", weight: 0.9 },
    ];
    const rare = many(() => (draw(shares, random) === "rare" ? 1 : 0));
    assert.ok(Math.abs(rare - 0.1) < 0.01);
    assert.equal(draw([], random), null);
  });

  it("of one thing do not depend on those of another", () => {
    assert.notEqual(randomFor(1, "a").next(), randomFor(1, "b").next());
    assert.notEqual(randomFor(1, "a").next(), randomFor(2, "a").next());
    assert.equal(randomFor(1, "a").next(), randomFor(1, "a").next());
  });
});
