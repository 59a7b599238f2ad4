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
import type { EngineMetrics, Fact, ScrapeResult } from "../vocabulary.ts";

const NUMBERS = {
  runningRequests: ["vllm:num_requests_running"],
  waitingRequests: ["vllm:num_requests_waiting"],
  kvUsage: ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
  prefixQueriedTokensTotal: [...counter("vllm:prefix_cache_queries"), ...counter("vllm:gpu_prefix_cache_queries")],
  prefixHitTokensTotal: [...counter("vllm:prefix_cache_hits"), ...counter("vllm:gpu_prefix_cache_hits")],
  preemptionsTotal: counter("vllm:num_preemptions"),
  promptTokensTotal: counter("vllm:prompt_tokens"),
  generatedTokensTotal: counter("vllm:generation_tokens"),
  draftTokensTotal: counter("vllm:spec_decode_num_draft_tokens"),
  acceptedDraftTokensTotal: counter("vllm:spec_decode_num_accepted_tokens"),
} as const satisfies Partial<Record<NumericFact, readonly string[]>>;

const CACHE_CONFIG = "vllm:cache_config_info";
const LORA = "vllm:lora_requests_info";
const SLEEP = "vllm:engine_sleep_state";

export const VLLM_FACT_SOURCES: FactSources = {
  ...NUMBERS,
  kvCapacityTokens: [`${CACHE_CONFIG}{kv_cache_size_tokens}`, `${CACHE_CONFIG}{num_gpu_blocks,block_size}`],
  kvBlockTokens: [`${CACHE_CONFIG}{block_size}`],
  prefixCachingEnabled: [`${CACHE_CONFIG}{enable_prefix_caching}`],
  residentAdapters: [`${LORA}{running_lora_adapters,waiting_lora_adapters}`],
  maxResidentAdapters: [`${LORA}{max_lora}`],
  asleep: [SLEEP],
};

/** What every vLLM publishes, adapters, speculation and sleep mode or not. */
const EXPECTED: readonly Fact[] = [
  "runningRequests",
  "waitingRequests",
  "kvUsage",
  "kvCapacityTokens",
  "kvBlockTokens",
  "prefixQueriedTokensTotal",
  "prefixHitTokensTotal",
  "preemptionsTotal",
  "promptTokensTotal",
  "generatedTokensTotal",
  "prefixCachingEnabled",
];

const WANTED: ReadonlySet<string> = new Set([
  ...Object.values(NUMBERS).flat(),
  CACHE_CONFIG,
  LORA,
  SLEEP,
  PROCESS_START,
]);

/** Reads a scrape of vLLM V1. The `engine` label is the data-parallel rank; an engine with one rank calls it what it likes. */
export function readVllmMetrics(text: string): ScrapeResult {
  const scrape = parsePrometheusText(text, WANTED);
  const gathered = gatherNumbers(scrape);
  const cacheConfigs = groupSamples(scrape.samples(CACHE_CONFIG), rankOf);
  for (const rank of cacheConfigs.keys()) if (gathered.size === 0) gathered.set(rank, nothingKnown());

  const adapters = newest(scrape.samples(LORA));
  const asleep = groupSamples(scrape.samples(SLEEP), rankOf);
  for (const [rank, facts] of gathered) {
    applyCacheConfig(facts, (cacheConfigs.get(rank) ?? [...cacheConfigs.values()][0])?.[0]);
    applyAdapters(facts, adapters);
    const awake = asleep.get(rank)?.find((sample) => sample.labels["sleep_state"] === "awake");
    if (awake !== undefined) facts.asleep = awake.value === 0;
  }
  const byRank = numberSingleRank(gathered);
  return { byRank, missing: missingOf(byRank, EXPECTED), startedAtSeconds: sumOf(scrape.samples(PROCESS_START)) };
}

function gatherNumbers(scrape: Scrape): Map<number, Gathered> {
  const byRank = new Map<number, Gathered>();
  for (const [fact, names] of Object.entries(NUMBERS) as [NumericFact, readonly string[]][]) {
    for (const [rank, samples] of groupSamples(samplesOf(scrape, names), rankOf)) {
      let facts = byRank.get(rank);
      if (facts === undefined) byRank.set(rank, (facts = nothingKnown()));
      facts[fact] = sumOf(samples);
    }
  }
  return byRank;
}

function rankOf(sample: Sample): number {
  return numberLabel(sample, "engine") ?? 0;
}

/** Behind an external balancer each rank is an endpoint of its own, and its only `engine` label may be 3. */
function numberSingleRank(gathered: ReadonlyMap<number, EngineMetrics>): ReadonlyMap<number, EngineMetrics> {
  return gathered.size === 1 ? new Map([...gathered.values()].map((facts) => [0, facts])) : gathered;
}

function applyCacheConfig(facts: Gathered, config: Sample | undefined): void {
  if (config === undefined) return;
  const blockTokens = numberLabel(config, "block_size");
  const blocks = numberLabel(config, "num_gpu_blocks");
  facts.kvBlockTokens = blockTokens;
  // Newer engines tell tokens outright, which stays right where layers have caches of several block sizes.
  facts.kvCapacityTokens =
    numberLabel(config, "kv_cache_size_tokens") ??
    (blocks !== null && blockTokens !== null ? blocks * blockTokens : null);
  const caching = config.labels["enable_prefix_caching"];
  facts.prefixCachingEnabled = caching === undefined || caching === "None" ? null : caching === "True";
}

/** A sample's value is the time when its label set was true, and old sets are never removed: only the newest holds. */
function newest(samples: readonly Sample[]): Sample | undefined {
  let latest: Sample | undefined;
  for (const sample of samples) if (latest === undefined || sample.value > latest.value) latest = sample;
  return latest;
}

function applyAdapters(facts: Gathered, sample: Sample | undefined): void {
  if (sample === undefined) return;
  const { running_lora_adapters: running = "", waiting_lora_adapters: waiting = "" } = sample.labels;
  const names = `${running},${waiting}`.split(",").map((name) => name.trim());
  facts.residentAdapters = [...new Set(names.filter((name) => name !== ""))];
  facts.maxResidentAdapters = numberLabel(sample, "max_lora");
}
