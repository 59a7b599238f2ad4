import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  array,
  assert as holds,
  boolean,
  constantFrom,
  double,
  integer,
  nat,
  oneof,
  option,
  property,
  record,
} from "fast-check";
import { SeededRandom } from "#src/determinism/random.ts";
import { createPolicy, POLICY_NAMES } from "#src/routing/createPolicy.ts";
import type { ChoiceInput } from "#src/routing/policy.ts";
import type { PricedReplica } from "#src/routing/pricedReplica.ts";
import { choiceInput, decoding, fixedLatency, replica, request } from "./pool.ts";

const SESSIONS = ["ada", "grace", "edsger", null];

function equalReplicas(count: number): PricedReplica[] {
  return Array.from({ length: count }, () => replica({ load: decoding(2, 500, 100) }));
}

/** Many requests of many clients, one after the other, by one policy; the load is not fed back. */
function chooseMany(name: string, pool: readonly PricedReplica[], count: number, seed: number): number[] {
  const policy = createPolicy(name);
  const random = new SeededRandom(seed);
  return Array.from({ length: count }, (_, at) => {
    const asked = request(400, { seed: at + 1, session: `client-${at}` });
    return policy.choose(choiceInput(pool, { request: asked, random })).index;
  });
}

const figure = oneof(
  { weight: 5, arbitrary: integer({ min: 0, max: 100_000 }) },
  constantFrom(0, Number.NaN, Number.POSITIVE_INFINITY),
);

const anyReplica = record({
  sequences: integer({ min: 0, max: 600 }),
  context: integer({ min: 0, max: 30_000 }),
  remaining: integer({ min: 0, max: 5_000 }),
  waiting: integer({ min: 0, max: 50 }),
  pendingMs: figure,
  slots: integer({ min: 0, max: 300 }),
  capacityTokens: integer({ min: 0, max: 1_000_000 }),
  scrapedMs: option(integer({ min: -20_000, max: 0 })),
  kvUsage: option(double({ min: 0, max: 1, noNaN: true })),
  latencyMs: figure,
}).map((made) =>
  replica({
    load: {
      ...decoding(made.sequences, made.context, made.remaining),
      waitingSequences: made.waiting,
      pendingPrefillMs: made.pendingMs,
    },
    slots: made.slots,
    capacityTokens: made.capacityTokens,
    metrics: made.scrapedMs === null ? null : { atMs: made.scrapedMs, value: { kvUsage: made.kvUsage } },
    latency: { ...fixedLatency(), prefillMs: () => made.latencyMs, stepMs: () => made.latencyMs / 10 },
  }),
);

const anyInput = record({
  pool: array(anyReplica, { minLength: 1, maxLength: 12 }),
  promptTokens: integer({ min: 0, max: 40_000 }),
  cached: array(figure, { minLength: 12, maxLength: 12 }),
  tiers: boolean(),
  outputTokens: figure,
  session: constantFrom(...SESSIONS),
  adapter: constantFrom("french", null),
  generates: boolean(),
  sequences: integer({ min: 1, max: 300 }),
  seed: nat(),
  targets: constantFrom(null, { ttftTargetMs: 500, tpotTargetMs: 50, weight: 2 }),
}).map(
  ({ pool, promptTokens, cached, tiers, outputTokens, session, adapter, generates, sequences, seed, targets }) =>
    (): ChoiceInput =>
      choiceInput(pool, {
        request: request(promptTokens, { session, adapter, generates, sequences }),
        cachedTokens: Float64Array.from(cached),
        hostTokens: tiers ? Float64Array.from(cached, (tokens) => tokens * 2) : null,
        lineMs: null,
        diskTokens: tiers ? Float64Array.from(cached, (tokens) => tokens * 3) : null,
        heldTokens: tiers ? Float64Array.from(cached) : null,
        expectedOutputTokens: outputTokens,
        random: new SeededRandom(seed),
        classTargets: targets,
      }),
);

for (const name of POLICY_NAMES)
  describe(`policy ${name}`, () => {
    it("chooses one of the candidates, whatever the facts, NaN and infinity included", () => {
      holds(
        property(anyInput, (input) => {
          const given = input();
          const { index, tied, branch } = createPolicy(name).choose(given);
          assert.ok(Number.isInteger(index) && index >= 0 && index < given.candidates.length, `index ${index}`);
          assert.ok(tied >= 1 && tied <= given.candidates.length, `tied ${tied}`);
          assert.match(branch, /^[a-z_]+$/);
        }),
        { numRuns: 300 },
      );
    });

    it("chooses the same for the same seed and facts", () => {
      holds(
        property(anyInput, (input) => {
          assert.equal(createPolicy(name).choose(input()).index, createPolicy(name).choose(input()).index);
        }),
        { numRuns: 100 },
      );
      const pool = equalReplicas(7);
      assert.deepEqual(chooseMany(name, pool, 50, 9), chooseMany(name, pool, 50, 9));
    });

    it("takes the only replica there is", () => {
      for (const session of SESSIONS) {
        const input = choiceInput([replica({ load: decoding(300, 1000, 100) })], { request: request(0, { session }) });
        assert.equal(createPolicy(name).choose(input).index, 0);
      }
    });

    it("works where nothing is known: no load, no scrape, no cache, no identity", () => {
      const unhashable = request(0);
      const blank = {
        ...unhashable,
        identity: { ...unhashable.identity, promptTokens: 0, unhashable: "malformed_prompt" as const },
      };
      const input = choiceInput([replica(), replica(), replica()], { request: blank, expectedOutputTokens: 0 });
      assert.ok([0, 1, 2].includes(createPolicy(name).choose(input).index));
    });

    it("spreads different clients over equal replicas", () => {
      const pool = equalReplicas(8);
      const counts = Array.from({ length: 8 }, () => 0);
      for (const index of chooseMany(name, pool, 800, 3)) counts[index]!++;
      for (const [index, count] of counts.entries()) assert.ok(count >= 50, `replica ${index} got ${count} of 800`);
    });

    it("never lets the order of the list decide", () => {
      const pool = equalReplicas(2);
      const reversed = [...pool].reverse();
      const first = (candidates: readonly PricedReplica[]) =>
        chooseMany(name, candidates, 200, 5).filter((index) => index === 0).length;
      assert.ok(first(pool) >= 50 && first(pool) <= 150, `first of the list: ${first(pool)} of 200`);
      assert.ok(first(reversed) >= 50 && first(reversed) <= 150, `first of the list: ${first(reversed)} of 200`);
    });

    it("goes on while replicas leave and join", () => {
      const policy = createPolicy(name);
      const random = new SeededRandom(4);
      const all = equalReplicas(10);
      const seen = new Set<string>();
      for (let round = 0; round < 400; round++) {
        const pool = all.filter(() => random.next() < 0.6);
        if (pool.length === 0) continue;
        const asked = request(200, { seed: round, session: `client-${round}` });
        const { index } = policy.choose(choiceInput(pool, { request: asked, random }));
        assert.ok(index >= 0 && index < pool.length);
        seen.add(pool[index]!.id);
      }
      assert.equal(seen.size, all.length);
    });
  });
