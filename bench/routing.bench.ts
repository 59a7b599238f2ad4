/**
 * One decision over 64 replicas for a prompt of 12,000 tokens in blocks of 16, matching the index included:
 *
 *     node bench/routing.bench.ts
 *
 * Prints the percentiles of single decisions, timed one by one, then mitata's table per pool size and policy.
 */
import { bench, do_not_optimize, group, run } from "mitata";
import { SeededRandom } from "#src/determinism/random.ts";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { createPolicy, POLICY_NAMES } from "#src/routing/createPolicy.ts";
import { recordDecision } from "#src/routing/decision.ts";
import type { ChoiceInput } from "#src/routing/policy.ts";

const MODEL = "llama";
const BLOCK_TOKENS = 16;
const PROMPT_TOKENS = 12_000;
const PREFIXES = 32;
const SCRAPE = {
  runningRequests: 10,
  waitingRequests: 0,
  kvUsage: 0.2,
  kvCapacityTokens: 450_000,
  kvBlockTokens: BLOCK_TOKENS,
  maxRunningRequests: 256,
  prefixQueriedTokensTotal: 1e6,
  prefixHitTokensTotal: 4e5,
  preemptionsTotal: 0,
  promptTokensTotal: 1e6,
  generatedTokensTotal: 1e5,
  residentAdapters: null,
  maxResidentAdapters: null,
  draftTokensTotal: null,
  acceptedDraftTokensTotal: null,
  prefixCachingEnabled: true,
  asleep: null,
};

function prompt(random: SeededRandom, sharedBlocks: bigint[]): RouteRequest {
  const hashes = new BigUint64Array(PROMPT_TOKENS / BLOCK_TOKENS);
  for (let at = 0; at < hashes.length; at++)
    hashes[at] = sharedBlocks[at] ?? BigInt(random.below(2 ** 32)) * 4294967296n + BigInt(random.below(2 ** 32));
  return {
    id: "request-1",
    model: MODEL,
    adapter: null,
    identity: {
      hashes,
      blockTokens: BLOCK_TOKENS,
      promptTokens: PROMPT_TOKENS,
      promptBytes: 48_000,
      approximate: true,
      unhashable: null,
    },
    maxOutputTokens: 500,
    sequences: 1,
    session: "ada",
    tenant: "anonymous",
    className: "standard",
    arrivedMs: 0,
    deadlineMs: 1e9,
    bodyBytes: 48_000,
    generates: true,
  };
}

/** A fleet in mid-work: ten requests on each replica, prefixes cached here and there, scrapes a second old. */
function busyFleet(count: number): { fleet: Fleet; requests: RouteRequest[] } {
  const fleet = new Fleet();
  const random = new SeededRandom(1);
  const endpoints = Array.from({ length: count }, (_, at) => ({
    url: `http://10.0.0.${at}:8000`,
    name: `10.0.0.${at}:8000`,
    engine: "vllm" as const,
    role: "mixed" as const,
    labels: {},
    apiKey: null,
    dataParallelRanks: 1,
    prior: null,
  }));
  fleet.applyEndpoints("bench", endpoints, 0);
  for (const { name } of endpoints) {
    fleet.applyProfile(
      name,
      {
        kind: "vllm",
        version: null,
        dataParallelRanks: 1,
        models: [{ id: MODEL, parent: null, maxModelTokens: null }],
        maxRunningRequests: 256,
        kvCapacityTokens: 450_000,
        kvBlockTokens: BLOCK_TOKENS,
      },
      0,
    );
    fleet.applyHealth(name, "ready", 0);
  }
  const prefixes = Array.from({ length: PREFIXES }, () => [
    ...prompt(random, []).identity.hashes.subarray(0, 100 + random.below(600)),
  ]);
  for (const replica of fleet.replicas())
    for (let at = 0; at < 10; at++) {
      const request = prompt(random, prefixes[random.below(PREFIXES)]!);
      const reservation = fleet.ledger.reserve(request, replica, 1600, 300, at);
      fleet.index.confirm(fleet.index.place(replica.index, request.identity, at), at);
      if (at < 8) fleet.ledger.progress(reservation, 1 + random.below(200), at);
      fleet.applyMetrics(replica, SCRAPE, at);
    }
  const requests = Array.from({ length: 256 }, () => prompt(random, prefixes[random.below(PREFIXES)]!));
  return { fleet, requests };
}

/** What the scheduler does between a request and its placement, eligibility included and the reservation not. */
function decider(count: number, policyName: string): () => number {
  const { fleet, requests } = busyFleet(count);
  const policy = createPolicy(policyName);
  const held = heldBlocks(fleet.indexBound);
  const cachedTokens = new Float64Array(count);
  const heldTokens = new Float64Array(count);
  const random = new SeededRandom(1);
  const excluded = new Set<string>();
  let decisions = 0;
  return () => {
    const request = requests[decisions++ % requests.length]!;
    const { candidates, ineligible, branch } = fleet.eligible(request, excluded, 1000);
    fleet.index.match(request.identity.hashes, candidates, held);
    for (let at = 0; at < candidates.length; at++) {
      const { index } = candidates[at]!;
      cachedTokens[at] = held.gpu[index]! * BLOCK_TOKENS;
      heldTokens[at] = fleet.index.heldBy(index) * BLOCK_TOKENS;
    }
    const input: ChoiceInput = {
      request,
      candidates,
      cachedTokens,
      hostTokens: null,
      diskTokens: null,
      lineMs: null,
      heldTokens,
      expectedOutputTokens: 300,
      nowMs: 1000,
      random,
      classTargets: { ttftTargetMs: 2000, tpotTargetMs: 100, weight: 1 },
    };
    const choice = policy.choose(input);
    const decision = recordDecision({
      id: "d-1",
      requestId: request.id,
      model: MODEL,
      policy: policy.name,
      input,
      choice,
      eligibility: branch,
      ineligible,
      attempt: 1,
    });
    return decision.chosen;
  };
}

const BATCHES = 30;
const BATCH = 1000;

/** Of single decisions in microseconds. Other processes only add to a time: the quietest batch shows the code's own. */
function percentiles(decide: () => number): Record<string, string> {
  for (let at = 0; at < 5000; at++) decide();
  const all = new Float64Array(BATCHES * BATCH);
  let quietest = Number.POSITIVE_INFINITY;
  for (let batch = 0; batch < BATCHES; batch++) {
    const micros = all.subarray(batch * BATCH, (batch + 1) * BATCH);
    for (let at = 0; at < BATCH; at++) {
      const start = process.hrtime.bigint();
      decide();
      micros[at] = Number(process.hrtime.bigint() - start) / 1000;
    }
    quietest = Math.min(quietest, percentile(micros, 0.99));
  }
  return {
    "p50 µs": percentile(all, 0.5).toFixed(1),
    "p90 µs": percentile(all, 0.9).toFixed(1),
    "p99 µs": percentile(all, 0.99).toFixed(1),
    "p99 µs, quietest batch": quietest.toFixed(1),
  };
}

function percentile(values: Float64Array, share: number): number {
  return values.toSorted()[Math.floor(share * (values.length - 1))]!;
}

// First, while this process has seen one policy only, as a router has.
console.table(
  Object.fromEntries(
    [16, 64, 128].map((count) => [`kvasir, ${count} replicas`, percentiles(decider(count, "kvasir"))]),
  ),
);

group("kvasir by pool size", () => {
  for (const count of [8, 16, 32, 64, 128]) {
    const decide = decider(count, "kvasir");
    bench(`${count} replicas`, () => do_not_optimize(decide())).gc("once");
  }
});
group("64 replicas by policy", () => {
  for (const name of POLICY_NAMES) {
    const decide = decider(64, name);
    bench(name, () => do_not_optimize(decide())).gc("once");
  }
});
await run();
