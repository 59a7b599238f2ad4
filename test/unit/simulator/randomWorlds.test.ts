import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { POLICY_NAMES } from "#src/routing/createPolicy.ts";
import { run } from "#src/simulator/run.ts";
import type { Arrival } from "#src/simulator/workload/arrival.ts";
import type { Incident } from "#src/simulator/world/runSettings.ts";
import { arrival, engines, fixed, router, settings } from "./harness.ts";

const arrivals: fc.Arbitrary<Arrival[]> = fc.array(
  fc
    .record({
      atMs: fc.integer({ min: 0, max: 4_000 }),
      prefix: fc.nat(3),
      own: fc.nat(4),
      prefixTokens: fc.integer({ min: 1, max: 400 }),
      ownTokens: fc.integer({ min: 1, max: 300 }),
      outputTokens: fc.integer({ min: 0, max: 60 }),
      adapter: fc.constantFrom(null, null, "a", "b", "c"),
      className: fc.constantFrom("interactive", "standard", "batch"),
    })
    .map(({ atMs, prefix, own, prefixTokens, ownTokens, outputTokens, adapter, className }) =>
      arrival(atMs, {
        content: { ids: [prefix, 10 + own], tokens: [prefixTokens, ownTokens] },
        promptTokens: prefixTokens + ownTokens,
        outputTokens,
        adapter,
        className,
      }),
    ),
  { maxLength: 60 },
);

const incidents: fc.Arbitrary<Incident[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant("crash" as const),
      atMs: fc.integer({ min: 0, max: 4_000 }),
      engine: fc.nat(1),
      downMs: fc.integer({ min: 0, max: 2_000 }),
      loadMs: fc.integer({ min: 0, max: 2_000 }),
    }),
    fc.record({
      kind: fc.constant("slow" as const),
      atMs: fc.integer({ min: 0, max: 4_000 }),
      engine: fc.nat(1),
      factor: fc.double({ min: 0.5, max: 5, noNaN: true }),
    }),
  ),
  { maxLength: 3 },
);

const world = fc.record({
  arrivals,
  incidents,
  policy: fc.constantFrom(...POLICY_NAMES),
  binding: fc.constantFrom("scheduler" as const, "immediate" as const),
  routers: fc.integer({ min: 1, max: 3 }),
  slots: fc.integer({ min: 1, max: 6 }),
  kvBlocks: fc.integer({ min: 48, max: 200 }),
  budget: fc.integer({ min: 32, max: 1_000 }),
  maxWaitMs: fc.constantFrom(50, 500, 30_000),
  maxRequests: fc.constantFrom(0, 5, 1_000),
  scrapeLossShare: fc.constantFrom(0, 0.5, 1),
  scrapeDelayMs: fc.constantFrom(0, 300),
  events: fc.constantFrom(
    null,
    { delayMs: 0, lossShare: 0, replayMs: 0 },
    { delayMs: 3, lossShare: 0.2, replayMs: 40 },
  ),
  networkMs: fc.constantFrom(0, 2),
  seed: fc.nat(1_000),
});

describe("random worlds", () => {
  // `run` itself throws if the ledger, an engine or a queue is not empty at the end.
  it("lose no request, end none twice, and leave nothing behind", () => {
    fc.assert(
      fc.property(world, (made) => {
        const { world } = run(
          settings({
            engines: engines(2, { maxRunning: made.slots, kvBlocks: made.kvBlocks, maxBatchedTokens: made.budget }),
            router: router(made.policy, made.binding),
            routers: made.routers,
            incidents: made.incidents,
            networkMs: made.networkMs,
            events: made.events,
            queue: { maxRequests: made.maxRequests, maxBytes: 1e9, maxWaitMs: made.maxWaitMs },
            monitor: {
              scrapeEveryMs: 500,
              scrapeDelayMs: made.scrapeDelayMs,
              scrapeLossShare: made.scrapeLossShare,
              healthEveryMs: 700,
            },
            adapters: ["a", "b", "c"],
            seed: made.seed,
          }),
          fixed(made.arrivals),
        );
        assert.equal(world.records.length, made.arrivals.length);
        for (const record of world.records) {
          const { ending, arrivedMs, boundMs, reachedMs, scheduledMs, firstTokenMs, endedMs } = record;
          assert.ok(endedMs >= arrivedMs);
          assert.ok(ending === "answered" || record.code !== null);
          assert.ok(record.attempts >= 1 && record.attempts <= 3);
          if (ending !== "answered") continue;
          const course = [arrivedMs, boundMs, reachedMs, scheduledMs, firstTokenMs, endedMs];
          assert.deepEqual(
            course,
            course.toSorted((a, b) => a - b),
            JSON.stringify(record),
          );
          assert.ok(record.cachedTokens < record.promptTokens);
        }
        const made400 = world.records.every(({ code }) => code !== "internal");
        assert.ok(made400, "the router failed at a request");
      }),
      { numRuns: 150 },
    );
  });
});
