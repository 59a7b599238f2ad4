import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nothingKnown } from "#src/engines/facts.ts";
import { RestartDetector } from "#src/engines/restartDetector.ts";
import type { ScrapeResult } from "#src/engines/vocabulary.ts";

function scrape(promptTokensTotal: number | null, startedAtSeconds: number | null = null): ScrapeResult {
  return { byRank: new Map([[0, { ...nothingKnown(), promptTokensTotal }]]), missing: [], startedAtSeconds };
}

/** Observes one after another; whether each was a restart. */
function observe(...scrapes: [ScrapeResult, wasGone?: boolean][]): boolean[] {
  const detector = new RestartDetector();
  return scrapes.map(([each, wasGone = false]) => detector.observe(each, wasGone));
}

describe("telling a restart", () => {
  it("goes by the start time", () => {
    assert.deepEqual(observe([scrape(5, 1000)], [scrape(9, 1000)], [scrape(9, 1500)], [scrape(9, 1500)]), [
      false,
      false,
      true,
      false,
    ]);
    assert.deepEqual(observe([scrape(5, 1000)], [scrape(5, 1000.4)]), [false, false], "a wobble");
    assert.deepEqual(observe([scrape(5, 1000)], [scrape(5, 1000), true]), [false, false], "was out of reach only");
  });

  it("goes by counters, where there is no start time or it is too near to tell", () => {
    assert.deepEqual(observe([scrape(5, 1000)], [scrape(2, 1000.6)], [scrape(3, 1000.6)]), [false, true, false]);
    assert.deepEqual(observe([scrape(5)], [scrape(7)], [scrape(6)], [scrape(6)]), [false, false, true, false]);
    assert.deepEqual(observe([scrape(5)], [scrape(5), true]), [false, false], "stood still meanwhile");
  });

  it("believes that what was gone has restarted where nothing else can tell", () => {
    assert.deepEqual(observe([scrape(null)], [scrape(null)], [scrape(null), true]), [false, false, true]);
    assert.deepEqual(observe([scrape(0)], [scrape(0), true]), [false, true]);
  });

  it("keeps ranks apart", () => {
    const detector = new RestartDetector();
    const ranks = (first: number, second: number): ScrapeResult => ({
      byRank: new Map([
        [0, { ...nothingKnown(), promptTokensTotal: first }],
        [1, { ...nothingKnown(), promptTokensTotal: second }],
      ]),
      missing: [],
    });
    assert.equal(detector.observe(ranks(10, 900), false), false);
    assert.equal(detector.observe(ranks(20, 901), false), false);
    assert.equal(detector.observe(ranks(30, 3), false), true);
  });

  it("ignores a scrape with nothing new", () => {
    assert.deepEqual(observe([scrape(5)], [{ byRank: new Map(), missing: [] }], [scrape(6)]), [false, false, false]);
  });
});
