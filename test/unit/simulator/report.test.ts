import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compare } from "#src/simulator/comparison.ts";
import type { ComparisonPlan } from "#src/simulator/comparison.ts";
import { estimate } from "#src/simulator/report/confidence.ts";
import { distribution, jainIndex, variation } from "#src/simulator/report/distribution.ts";
import { shown } from "#src/simulator/report/figures.ts";
import { htmlReport } from "#src/simulator/report/htmlReport.ts";
import { jsonReport } from "#src/simulator/report/jsonReport.ts";
import { PooledCache } from "#src/simulator/report/pooledCache.ts";
import { summarise } from "#src/simulator/report/summary.ts";
import { tableText } from "#src/simulator/report/tableText.ts";
import { run } from "#src/simulator/run.ts";
import { conversations } from "#src/simulator/workload/conversations.ts";
import { SHAPES } from "#src/simulator/workload/shapes.ts";
import { arrival, engines, fixed, router, settings } from "./harness.ts";

const NOBODY = { classes: [], tenants: [], adapters: [] };

describe("figures", () => {
  it("count a missed request as infinitely late in quantiles, and not in means", () => {
    const values = [
      ...Array.from({ length: 98 }, (_, at) => at + 1),
      Number.POSITIVE_INFINITY,
      Number.POSITIVE_INFINITY,
    ];
    const { mean, p50, p90, p99 } = distribution(values);
    assert.deepEqual([mean, p50, p90, p99], [49.5, 50, 90, Number.POSITIVE_INFINITY]);
  });

  it("give Student's interval over seeds", () => {
    const { mean, plusMinus } = estimate([1, 2, 3]);
    assert.equal(mean, 2);
    // 4.303 · 1 / √3
    assert.ok(Math.abs(plusMinus - 2.4843) < 1e-3);
    assert.ok(Number.isNaN(estimate([5]).plusMinus));
  });

  it("measure imbalance and fairness", () => {
    assert.equal(variation([3, 3, 3]), 0);
    assert.equal(variation([0, 2]), 1);
    assert.equal(variation([0, 0]), 0);
    assert.equal(jainIndex([1, 1, 1, 1]), 1);
    assert.equal(jainIndex([1, 0, 0, 0]), 0.25);
  });

  it("are shown in the unit that suits them", () => {
    assert.deepEqual(
      [
        shown(12.34, "ms"),
        shown(1_234, "ms"),
        shown(123_456, "ms"),
        shown(Number.POSITIVE_INFINITY, "ms"),
        shown(0.5, "%"),
      ],
      ["12.3 ms", "1.23 s", "123 s", "missed", "50.0%"],
    );
  });
});

describe("a pooled cache", () => {
  const chain = (...ids: number[]) => BigUint64Array.from(ids, BigInt);

  it("counts leading blocks it holds, and forgets the least recently used", () => {
    const cache = new PooledCache(4, 10);
    cache.see(chain(1, 2), 25);
    cache.see(chain(1, 2, 3), 35);
    assert.equal(cache.cachedShare, 20 / 60);
    // Block 7 takes the room that is left, 8 that of 3: the tail goes first.
    cache.see(chain(7, 8), 20);
    cache.see(chain(1, 2, 3), 35);
    assert.equal(cache.cachedShare, 40 / 115);
  });

  it("leaves the last token to compute", () => {
    const cache = new PooledCache(4, 10);
    cache.see(chain(1, 2), 20);
    cache.see(chain(1, 2), 20);
    assert.equal(cache.cachedShare, 10 / 40);
  });
});

describe("a summary", () => {
  it("takes targets from the class, and refused requests as missed", () => {
    const classes = [
      { name: "standard", priority: 1, ttftTargetMs: 20, tpotTargetMs: 100, weight: 1, guaranteedShare: 0.05 },
    ];
    const tenants = ["a", "a", "b", "b"];
    const finished = run(
      settings({
        engines: engines(1, { maxRunning: 1 }),
        classes,
        queue: { maxRequests: 1, maxBytes: 1e9, maxWaitMs: 10_000 },
      }),
      fixed(tenants.map((tenant, at) => arrival(at, { tenant }))),
    );
    const summary = summarise(finished, 0.5);
    assert.deepEqual([summary.requests, summary.answered, summary.refused, summary.failed], [4, 2, 2, 0]);
    // The second one waited for the first to decode nine tokens.
    assert.equal(summary.goodShare, 0.25);
    assert.equal(summary.ttftMs.p99, Number.POSITIVE_INFINITY);
    assert.ok(summary.ttftMs.mean < 100);
    assert.ok(summary.longestWaitMs > 40 && summary.longestWaitMs < 100);
    assert.deepEqual(Object.keys(summary.classes), ["standard"]);
    // Tenant b got nothing.
    assert.equal(summary.fairness, 0.5);
    assert.equal(summary.busyVariation, 0);
  });
});

describe("a comparison", () => {
  const { router: _router, seed: _seed, ...shared } = settings({ routers: 2, adapters: ["x", "y"] });
  const plan: ComparisonPlan = {
    settings: shared,
    routers: [router("kvasir"), router("round-robin", "immediate")],
    rates: [1, 3],
    seeds: [1, 2],
    workload: (rate, seed) =>
      conversations(SHAPES.chat, {
        perSecond: 4 * rate,
        requests: 60,
        senders: { ...NOBODY, tenants: [{ name: "t<1>", weight: 1 }], adapters: [{ name: "x", weight: 1 }] },
        seed,
      }),
    fixedOrder: false,
  };
  const cells = compare(plan);

  it("gives the same bytes each time", () => {
    const first = jsonReport({ some: "command" }, cells);
    assert.equal(jsonReport({ some: "command" }, compare(plan)), first);
    const report = JSON.parse(first) as { cells: { seeds: { requests: number }[] }[] };
    assert.deepEqual(
      report.cells.map(({ seeds }) => seeds.length),
      [2, 2, 2, 2],
    );
  });

  it("differs between seeds, and gives each router the same conversations", () => {
    const [kvasir, roundRobin] = cells;
    assert.notEqual(kvasir!.summaries[0]!.ttftMs.mean, kvasir!.summaries[1]!.ttftMs.mean);
    assert.ok(kvasir!.summaries[0]!.cachedShare > roundRobin!.summaries[0]!.cachedShare);
    assert.ok(kvasir!.summaries.every(({ cachedShare, pooledShare }) => cachedShare <= pooledShare! + 0.02));
  });

  it("is shown as a table per rate", () => {
    const lines = tableText(cells).split("\n");
    assert.equal(lines[0], "rate 1");
    assert.match(lines[2]!, /^kvasir {7}/u);
    assert.match(lines[3]!, /^round-robin {2}/u);
    assert.equal(lines[5], "rate 3");
    assert.equal(new Set(lines.slice(1, 4).map(({ length }) => length)).size, 1);
  });

  it("is shown by class where there are several", () => {
    const classes = [
      { name: "batch", weight: 1 },
      { name: "standard", weight: 3 },
    ];
    const mixed = compare({
      ...plan,
      rates: [1],
      workload: (rate, seed) =>
        conversations(SHAPES.chat, { perSecond: 4 * rate, requests: 60, senders: { ...NOBODY, classes }, seed }),
    });
    const lines = tableText(mixed).split("\n");
    assert.equal(lines[5], "rate 1, by class");
    assert.deepEqual(
      lines.slice(7).map((line) => line.split(/ {2,}/u)[0]),
      ["kvasir batch", "kvasir standard", "round-robin batch", "round-robin standard"],
    );
    const { classes: services, outputTokensPerSecond, requests } = mixed[0]!.summaries[0]!;
    const { batch, standard } = services;
    assert.equal(batch!.requests + standard!.requests, requests);
    const sum = batch!.outputTokensPerSecond + standard!.outputTokensPerSecond;
    assert.ok(Math.abs(sum - outputTokensPerSecond) < 1e-6);
    assert.ok(batch!.outputTokensPerSecond > 0 && standard!.outputTokensPerSecond > batch!.outputTokensPerSecond);
  });

  it("is shown as a page that needs nothing else", () => {
    const page = htmlReport("kvasir simulate --policy <&>", cells);
    assert.ok(page.includes("&lt;&amp;&gt;"));
    assert.doesNotMatch(page, /<script|src=|href=|url\(|NaN|undefined/u);
    assert.equal(page.match(/<svg /gu)?.length, 6 + 2 * 6);
  });
});
