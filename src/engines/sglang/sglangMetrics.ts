import {
  counter,
  groupSamples,
  missingOf,
  nothingKnown,
  numberLabel,
  PROCESS_START,
  samplesOf,
  sumOf,
  type FactSources,
  type Gathered,
  type NumericFact,
} from "../facts.ts";
import { parsePrometheusText, type Sample, type Scrape } from "../prometheusText.ts";
import type { Fact, ScrapeResult } from "../vocabulary.ts";

/** Published once per rank of the model; the scheduler of each data-parallel rank has its own. */
const GAUGES = {
  runningRequests: ["sglang:num_running_reqs"],
  waitingRequests: ["sglang:num_queue_reqs"],
  kvUsage: ["sglang:token_usage"],
  kvCapacityTokens: ["sglang:max_total_num_tokens"],
  kvBlockTokens: ["sglang:page_size"],
  maxResidentAdapters: ["sglang:lora_pool_slots_total"],
} as const satisfies Partial<Record<NumericFact, readonly string[]>>;

/** Counted by the front end, for all ranks together, from the first finished request on. */
const COUNTERS = {
  promptTokensTotal: counter("sglang:prompt_tokens"),
  generatedTokensTotal: counter("sglang:generation_tokens"),
  prefixHitTokensTotal: counter("sglang:cached_tokens"),
} as const satisfies Partial<Record<NumericFact, readonly string[]>>;

const CACHE_CONFIG = "sglang:cache_config_info";

export const SGLANG_FACT_SOURCES: FactSources = {
  ...GAUGES,
  ...COUNTERS,
  kvBlockTokens: [...GAUGES.kvBlockTokens, `${CACHE_CONFIG}{page_size}`],
  prefixQueriedTokensTotal: COUNTERS.promptTokensTotal,
};

export const SGLANG_EXPECTED: readonly Fact[] = ["runningRequests", "waitingRequests", "kvUsage", "kvCapacityTokens"];

const WANTED: ReadonlySet<string> = new Set([
  ...Object.values(GAUGES).flat(),
  ...Object.values(COUNTERS).flat(),
  CACHE_CONFIG,
  PROCESS_START,
]);

/** Reads a scrape of SGLang, or null if there is none of its series in it. */
export function readSglangMetrics(text: string): ScrapeResult | null {
  const scrape = parsePrometheusText(text, WANTED);
  const byRank = gatherGauges(scrape);
  if (byRank.size === 0) return text.includes("sglang:") ? { byRank, missing: SGLANG_EXPECTED } : null;
  const [only] = byRank.values();
  // With several ranks the shared counters cannot be told apart, and a share of them would be a guess.
  if (byRank.size === 1 && only !== undefined) applyCounters(only, scrape);
  return {
    byRank,
    missing: missingOf(byRank, SGLANG_EXPECTED),
    startedAtSeconds: sumOf(scrape.samples(PROCESS_START)),
  };
}

function gatherGauges(scrape: Scrape): Map<number, Gathered> {
  const byRank = new Map<number, Gathered>();
  const factsOf = (rank: number): Gathered => {
    const known = byRank.get(rank);
    if (known !== undefined) return known;
    const facts = nothingKnown();
    byRank.set(rank, facts);
    return facts;
  };
  for (const [fact, names] of Object.entries(GAUGES) as [NumericFact, readonly string[]][]) {
    const totals = samplesOf(scrape, names).filter(isTotal);
    for (const [rank, samples] of groupSamples(totals, dataParallelRank)) factsOf(rank)[fact] = ofFirstShard(samples);
  }
  for (const [rank, samples] of groupSamples(scrape.samples(CACHE_CONFIG), dataParallelRank)) {
    const facts = byRank.get(rank);
    if (facts !== undefined) facts.kvBlockTokens ??= numberLabel(samples[0], "page_size");
  }
  return byRank;
}

/** Per-priority series stand beside their total, which has an empty `priority`. */
function isTotal(sample: Sample): boolean {
  return (sample.labels["priority"] ?? "") === "";
}

function dataParallelRank(sample: Sample): number {
  return numberLabel(sample, "dp_rank") ?? 0;
}

/** All shards (tensor, pipeline, expert) of one data-parallel rank report the same requests: one of them counts. */
function ofFirstShard(samples: readonly Sample[]): number | null {
  const order = (sample: Sample): number[] =>
    ["pp_rank", "tp_rank", "moe_ep_rank"].map((label) => numberLabel(sample, label) ?? 0);
  const [first] = samples.toSorted((a, b) => {
    const [left, right] = [order(a), order(b)];
    return left.map((rank, at) => rank - (right[at] ?? 0)).find((difference) => difference !== 0) ?? 0;
  });
  return first !== undefined && Number.isFinite(first.value) ? first.value : null;
}

function applyCounters(facts: Gathered, scrape: Scrape): void {
  for (const [fact, names] of Object.entries(COUNTERS) as [NumericFact, readonly string[]][]) {
    facts[fact] = sumOf(samplesOf(scrape, names).filter(isTotal));
  }
  // Every prompt token is looked up.
  facts.prefixQueriedTokensTotal = facts.promptTokensTotal;
}
