/**
 * The fleet's inner loops, by hand: `node bench/fleet.bench.ts`. A decision over 64 replicas with a 12,000-token prompt
 * has 100 µs in all; these are the fleet's parts of it, and the index's memory per (block, replica) pair.
 */
import { bench, do_not_optimize, run, summary } from "mitata";
import { SeededRandom } from "#src/determinism/random.ts";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import { LatencyModel } from "#src/fleet/latencyModel.ts";
import { PrefixIndex } from "#src/fleet/prefixIndex.ts";
import { GENERIC_PRIOR } from "#src/hardware/stepTimes.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";

const REPLICAS = 64;
const BLOCK_TOKENS = 16;
const PROMPT_BLOCKS = 12_000 / BLOCK_TOKENS;

const random = new SeededRandom(1);

function someHashes(count: number): BigUint64Array {
  return BigUint64Array.from(
    { length: count },
    () => (BigInt(random.below(2 ** 32)) << 32n) | BigInt(random.below(2 ** 32)),
  );
}

/** Shares the first `shared` blocks with `hashes`. */
function branch(hashes: BigUint64Array, shared: number): BigUint64Array {
  const other = someHashes(hashes.length);
  other.set(hashes.subarray(0, shared));
  return other;
}

const fleet = new Fleet();
fleet.applyEndpoints(
  "list",
  Array.from({ length: REPLICAS }, (_, at) => ({
    url: `http://10.0.0.${at}:8000`,
    name: `10.0.0.${at}:8000`,
    engine: null,
    role: "mixed" as const,
    labels: {},
    apiKey: null,
    dataParallelRanks: null,
    prior: null,
  })),
  0,
);
for (const { id } of fleet.replicas()) {
  fleet.applyProfile(
    id,
    {
      kind: "vllm",
      version: null,
      dataParallelRanks: 1,
      models: [{ id: "m", parent: null, maxModelTokens: 131_072 }],
      maxRunningRequests: 256,
      kvCapacityTokens: 450_000,
      kvBlockTokens: 16,
    },
    0,
  );
  fleet.applyHealth(id, "ready", 0);
}
const candidates = fleet.replicas();

function request(hashes: BigUint64Array): RouteRequest {
  return {
    id: "r",
    model: "m",
    adapter: null,
    identity: {
      hashes,
      blockTokens: BLOCK_TOKENS,
      promptTokens: 12_000,
      promptBytes: 48_000,
      approximate: false,
      unhashable: null,
    },
    maxOutputTokens: 256,
    sequences: 1,
    session: null,
    tenant: "t",
    className: "default",
    arrivedMs: 0,
    deadlineMs: 1e9,
    bodyBytes: 48_000,
    generates: true,
  };
}

// Every replica is full: half with branches of one system prompt, half with prompts of their own.
const shared = someHashes(PROMPT_BLOCKS);
for (const { index } of candidates)
  for (let at = 0; at < 40; at++) {
    const hashes = index % 2 === 0 ? branch(shared, 1 + random.below(PROMPT_BLOCKS)) : someHashes(PROMPT_BLOCKS);
    fleet.index.confirm(fleet.index.place(index, { hashes, blockTokens: BLOCK_TOKENS }, 0), 0);
  }
fleet.index.confirm(fleet.index.place(0, { hashes: shared, blockTokens: BLOCK_TOKENS }, 0), 0);

const lone = new PrefixIndex();
lone.setCapacity(0, Number.POSITIVE_INFINITY);
const spread = new PrefixIndex();
const common = someHashes(PROMPT_BLOCKS);
for (let at = 0; at < 2 ** 20; at += PROMPT_BLOCKS)
  lone.confirm(lone.place(0, { hashes: someHashes(PROMPT_BLOCKS), blockTokens: BLOCK_TOKENS }, 0), 0);
for (const { index } of candidates)
  spread.confirm(spread.place(index, { hashes: common, blockTokens: BLOCK_TOKENS }, 0), 0);
console.log(`index of the fleet: ${fleet.index.size} holder-blocks of ${fleet.index.blocks} blocks`);
console.log(`bytes per holder-block: ${(fleet.index.bytes / fleet.index.size).toFixed(1)} there`);
console.log(`bytes per holder-block: ${(lone.bytes / lone.size).toFixed(1)} where no block is shared (one replica)`);
console.log(
  `bytes per holder-block: ${(spread.bytes / spread.size).toFixed(1)} where all of ${REPLICAS} hold the same\n`,
);

const out = heldBlocks(fleet.indexBound);
const unknown = someHashes(PROMPT_BLOCKS);
const excluded: ReadonlySet<string> = new Set();
const wanted = request(shared);

summary(() => {
  bench("match, 750 blocks, 64 replicas: one holds all, 32 hold some", () =>
    fleet.index.match(shared, candidates, out));
  bench("match, 750 blocks, 64 replicas: all hold all", () => spread.match(common, candidates, out));
  bench("match, 750 blocks, 64 replicas: nobody holds any", () => fleet.index.match(unknown, candidates, out));
});
bench("place + confirm, 750 blocks already held", () => {
  const placed = fleet.index.place(0, wanted.identity, 0);
  fleet.index.confirm(placed, 0);
});
bench("place + confirm, 750 new blocks, evicting as many", function* newBlocks() {
  yield {
    [0]: () => ({ hashes: someHashes(PROMPT_BLOCKS), blockTokens: BLOCK_TOKENS }),
    bench: (chain: { hashes: BigUint64Array; blockTokens: number }) =>
      fleet.index.confirm(fleet.index.place(1, chain, 0), 0),
  };
});
bench("eligible, 64 replicas", () => do_not_optimize(fleet.eligible(wanted, excluded, 0)));
bench("load.at, 64 replicas", () => {
  let sum = 0;
  for (const { load } of candidates) sum += load.at(0).pendingPrefillMs;
  return do_not_optimize(sum);
});
bench("prefillMs and stepMs, 64 replicas", () => {
  let sum = 0;
  for (const { latency } of candidates) sum += latency.prefillMs(4_000, 8_000) + latency.stepMs(20, 100_000);
  return do_not_optimize(sum);
});
bench("reserve, first token, 10 × progress, release", () => {
  const one = fleet.ledger.reserve(wanted, candidates[0]!, 8_000, 200, 0);
  fleet.ledger.firstToken(one, 1);
  for (let at = 1; at <= 10; at++) fleet.ledger.progress(one, at * 10, at);
  fleet.ledger.release(one, 20);
});
const model = new LatencyModel(GENERIC_PRIOR, "generic");
bench("observePrefill", () => model.observePrefill(1_000 + random.below(1_000), 2_000, 40, 10));
bench("observeStep", () => model.observeStep(16, 30_000, 7));

await run();
