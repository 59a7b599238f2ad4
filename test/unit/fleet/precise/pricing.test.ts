import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import type { KvStored } from "#src/engines/events/kvEvent.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import { kvEventsToFleet } from "#src/fleet/precise/kvEventsToFleet.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { chainRoot, tokenChain } from "#src/request/tokens/tokenChain.ts";
import { createPolicy } from "#src/routing/createPolicy.ts";
import { TERMS } from "#src/routing/terms/term.ts";
import { Placement } from "#src/scheduler/placement.ts";
import { Scheduler } from "#src/scheduler/scheduler.ts";
import { base, endpoint, metrics, profile, readyFleet, request } from "../samples.ts";
import { batch, named, removed, stored, tokens } from "./kvEvents.ts";

const BLOCK_TOKENS = 16;
const CAPACITY_TOKENS = 100_000;
const NOW_MS = 1_000;

const DOC = readFileSync(new URL("../../../../docs/cache-index.md", import.meta.url), "utf8");

/** What the document's table says of a and b; null: it has no such line. */
function workedOut(term: string): string[] | null {
  const row = DOC.split("\n").find(
    (line) => line.startsWith("|") && line.split("|")[1]!.replaceAll("*", "").trim() === term,
  );
  return (
    row
      ?.split("|")
      .slice(2, 4)
      .map((cell) => cell.trim()) ?? null
  );
}

/** Two H100s with an 8B model, "a:1" and "b:1", whose events are followed. */
function twoReplicas(): {
  fleet: Fleet;
  events: ReturnType<typeof kvEventsToFleet>;
  place: (prompt: RouteRequest) => Placement;
} {
  const { fleet } = readyFleet([]);
  const names = ["a:1", "b:1"];
  fleet.applyEndpoints(
    "list",
    names.map((name) => endpoint(name, { prior: "llama-3.1-8b/h100_tp1" })),
    0,
  );
  const events = kvEventsToFleet(fleet);
  for (const name of names) {
    const limits = { kvCapacityTokens: CAPACITY_TOKENS, kvBlockTokens: BLOCK_TOKENS, maxRunningRequests: 256 };
    fleet.applyProfile(name, profile({ models: [base("m")], ...limits }), 0);
    fleet.applyHealth(name, "ready", 0);
    events.live(endpoint(name), 0, { sinceSeq: null, complete: true }, 0);
  }
  const policy = createPolicy("kvasir");
  const scheduler = new Scheduler({ fleet, random: new SeededRandom(1), policyFor: () => policy });
  const place = (prompt: RouteRequest): Placement => {
    let bound: Placement | null = null;
    scheduler.submit(prompt, NOW_MS, (result) => {
      if (!(result instanceof Placement)) throw result;
      bound = result;
    });
    assert.ok(bound !== null);
    return bound;
  };
  return { fleet, events, place };
}

function prompt(promptTokens: number): RouteRequest {
  const hashes = tokenChain(chainRoot(null, null, BLOCK_TOKENS), tokens(0, promptTokens), BLOCK_TOKENS);
  const made = request({ promptTokens, maxOutputTokens: 101 });
  return { ...made, identity: { ...made.identity, hashes, blockTokens: BLOCK_TOKENS } };
}

/** The first blocks of `prompt`, or of another one where `from` says so. */
function blocks(count: number, from = 0): KvStored {
  const handles = Array.from({ length: count }, (_, at) => from + at + 1);
  return stored(handles, { blockTokens: BLOCK_TOKENS, tokenIds: tokens(from * BLOCK_TOKENS, count * BLOCK_TOKENS) });
}

const handlesOf = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1);

describe("what events tell, in prices", () => {
  it("takes a prefix in host memory for a hit that costs its way back, and less than computing it", () => {
    const { events, place } = twoReplicas();
    events.batch(endpoint("a:1"), 0, batch(0, blocks(500), named(handlesOf(500), "host"), removed(handlesOf(500))), 1);
    const { decision, cachedTokensPredicted, restoredTokens } = place(prompt(8_500));
    assert.equal(decision.replicaId, "a:1");
    assert.deepEqual([decision.cachedTokens(0), cachedTokensPredicted, restoredTokens], [0, 8_000, 8_000]);
    const saved = decision.termMs(1, "prefill") - decision.termMs(0, "prefill");
    assert.equal(decision.termMs(0, "restore"), 48);
    assert.ok(saved > 48, `${saved} ms saved`);
  });

  it("charges for what a full cache would lose, by what it really holds", () => {
    const { events, place } = twoReplicas();
    events.batch(endpoint("a:1"), 0, batch(0, blocks(CAPACITY_TOKENS / BLOCK_TOKENS, 10_000)), 1);
    events.batch(endpoint("b:1"), 0, batch(0, blocks(1_000, 10_000)), 1);
    const { decision } = place(prompt(8_000));
    assert.ok(decision.termMs(0, "eviction") > 0);
    assert.equal(decision.termMs(1, "eviction"), 0);
    assert.equal(decision.replicaId, "b:1");
  });

  it("gives a prompt to the smaller hit where the larger one has no room, as docs/cache-index.md works out", () => {
    const { fleet, events, place } = twoReplicas();
    events.batch(endpoint("a:1"), 0, batch(0, blocks(500), blocks(5_500, 10_000)), 1);
    events.batch(endpoint("b:1"), 0, batch(0, blocks(250)), 1);
    const a = fleet.byId("a:1")!;
    fleet.applyMetrics(
      a,
      metrics({
        runningRequests: 3,
        waitingRequests: 0,
        kvUsage: 0.98,
        kvCapacityTokens: CAPACITY_TOKENS,
        kvBlockTokens: BLOCK_TOKENS,
        maxRunningRequests: 256,
        prefixQueriedTokensTotal: 1_000,
        prefixHitTokensTotal: 500,
      }),
      NOW_MS,
    );
    const { decision } = place(prompt(10_000));
    assert.deepEqual([decision.cachedTokens(0), decision.cachedTokens(1)], [8_000, 4_000]);
    for (const term of TERMS) {
      const stated = workedOut(term);
      const computed = [0, 1].map((row) => decision.termMs(row, term).toFixed(3));
      if (stated === null) assert.deepEqual(computed, ["0.000", "0.000"], `${term} is not in the table`);
      else assert.deepEqual(stated, computed, term);
    }
    assert.deepEqual(workedOut("total"), [decision.totalMs(0).toFixed(3), decision.totalMs(1).toFixed(3)]);
    assert.equal(decision.replicaId, "b:1");
  });
});
