import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { SeededRandom } from "#src/determinism/random.ts";
import { Links } from "#src/fleet/links/links.ts";
import { Transfer } from "#src/fleet/links/transfer.ts";
import { PairChooser } from "#src/routing/pairs/pairChooser.ts";
import { PairSearch, PRUNING_SLACK } from "#src/routing/pairs/pairSearch.ts";
import { DEFAULT_PRICE_SETTINGS } from "#src/routing/priceSettings.ts";
import { modelledPairs } from "./modelledPairs.ts";

const cost = fc.double({ min: 0, max: 1000, noNaN: true });

describe("the pruned search for a pair", () => {
  it("finds a pair at most the slack dearer than the cheapest, or none that beats the ceiling by more than that", () => {
    const search = new PairSearch();
    fc.assert(
      fc.property(
        fc.array(cost, { minLength: 1, maxLength: 20 }),
        fc.array(cost, { minLength: 1, maxLength: 20 }),
        fc.array(cost, { minLength: 400, maxLength: 400 }),
        fc.option(fc.double({ min: 0, max: 3000, noNaN: true }), { nil: Number.POSITIVE_INFINITY }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (prefillMs, decodeMs, joint, ceilingMs, turn) => {
          const pairMs = (p: number, d: number): number => prefillMs[p]! + decodeMs[d]! + joint[20 * p + d]!;
          let best = Number.POSITIVE_INFINITY;
          for (let p = 0; p < prefillMs.length; p++)
            for (let d = 0; d < decodeMs.length; d++) best = Math.min(best, pairMs(p, d));
          const counts = { prefill: prefillMs.length, decode: decodeMs.length };
          const found = search.search({ prefillMs, decodeMs, pairMs }, counts, ceilingMs, turn);
          assert.equal(found.totalMs, pairMs(found.prefillAt, found.decodeAt));
          assert.ok(Math.min(found.totalMs, ceilingMs) <= best * (1 + PRUNING_SLACK) + 1e-9);
          assert.ok(found.priced <= prefillMs.length * decodeMs.length);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("leaves the choice between equal pairs to chance, not to the order of the lists", () => {
    const search = new PairSearch();
    const random = new SeededRandom(3);
    const equal = Array.from({ length: 8 }, () => 10);
    const seen = new Set<string>();
    for (let at = 0; at < 200; at++) {
      const costs = { prefillMs: equal, decodeMs: equal, pairMs: () => 20 };
      const found = search.search(costs, { prefill: 8, decode: 8 }, Number.POSITIVE_INFINITY, random.next());
      seen.add(`${found.prefillAt} ${found.decodeAt}`);
    }
    assert.equal(seen.size, 8);
  });
});

describe("choosing among modelled pairs", () => {
  it("loses at most 1 % against pricing every pair, and prices few", () => {
    const random = new SeededRandom(11);
    const pruned = new PairChooser(DEFAULT_PRICE_SETTINGS);
    const full = new PairChooser(DEFAULT_PRICE_SETTINGS);
    let looked = 0;
    let worst = 0;
    const rounds = 120;
    for (let at = 0; at < rounds; at++) {
      const links = new Links();
      const targets = at % 3 === 0 ? { ttftTargetMs: 200, tpotTargetMs: 20, weight: 2 } : null;
      const side = 4 + random.below(29);
      const { input, links: link } = modelledPairs({
        prefills: side,
        decodes: side,
        busy: at % 4 !== 0,
        links,
        random,
        targets,
      });
      for (let transfer = 0; transfer < side; transfer++)
        new Transfer(link(random.below(side), random.below(side)), 1e9 * random.next(), 0).begin(0);
      const found = pruned.choose(input, Number.POSITIVE_INFINITY)!;
      const { totalMs, looked: priced } = found;
      let best = Number.POSITIVE_INFINITY;
      // One pair at a time: nothing is pruned.
      for (let p = 0; p < side; p++)
        for (let d = 0; d < side; d++) {
          const only = {
            ...input,
            prefill: one(input.prefill, p),
            decode: one(input.decode, d),
            link: () => input.link(p, d),
          };
          best = Math.min(best, full.choose(only, Number.POSITIVE_INFINITY)!.totalMs);
        }
      assert.ok(totalMs >= best - 1e-6, `cheaper than the cheapest: ${totalMs} < ${best}`);
      worst = Math.max(worst, totalMs / best - 1);
      looked += priced / side ** 2;
    }
    assert.ok(worst <= 0.01, `lost ${worst}`);
    assert.ok(looked / rounds < 0.25, `priced ${looked / rounds} of all pairs`);
  });
});

function one<Side extends { candidates: readonly unknown[]; cachedTokens: ArrayLike<number> }>(
  side: Side,
  at: number,
): Side {
  return { ...side, candidates: [side.candidates[at]], cachedTokens: [side.cachedTokens[at]!] };
}
