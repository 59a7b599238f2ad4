import {
  counter,
  missingOf,
  nothingKnown,
  PROCESS_START,
  samplesOf,
  sumOf,
  type FactSources,
  type NumericFact,
} from "../facts.ts";
import { parsePrometheusText } from "../prometheusText.ts";
import type { Fact, ScrapeResult } from "../vocabulary.ts";

const NUMBERS = {
  runningRequests: ["trtllm_num_requests_running"],
  waitingRequests: ["trtllm_num_requests_waiting"],
  maxRunningRequests: ["trtllm_max_num_active_requests"],
  kvUsage: ["trtllm_kv_cache_utilization"],
  kvBlockTokens: ["trtllm_kv_cache_tokens_per_block"],
  promptTokensTotal: counter("trtllm_prompt_tokens"),
  generatedTokensTotal: counter("trtllm_generation_tokens"),
  prefixHitTokensTotal: counter("trtllm_prompt_cached_tokens"),
  draftTokensTotal: counter("trtllm_spec_decode_num_draft_tokens"),
  acceptedDraftTokensTotal: counter("trtllm_spec_decode_num_accepted_tokens"),
} as const satisfies Partial<Record<NumericFact, readonly string[]>>;

const MAX_BLOCKS = "trtllm_kv_cache_max_blocks";

export const TRTLLM_FACT_SOURCES: FactSources = {
  ...NUMBERS,
  kvCapacityTokens: [MAX_BLOCKS],
  prefixQueriedTokensTotal: NUMBERS.promptTokensTotal,
};

export const TRTLLM_EXPECTED: readonly Fact[] = [
  "runningRequests",
  "waitingRequests",
  "kvUsage",
  "kvCapacityTokens",
  "kvBlockTokens",
];

const WANTED: ReadonlySet<string> = new Set([...Object.values(NUMBERS).flat(), MAX_BLOCKS, PROCESS_START]);

/** Reads `/prometheus/metrics` (there with `return_perf_metrics: true`); null if it has no series of TensorRT-LLM. */
export function readTrtllmMetrics(text: string): ScrapeResult | null {
  if (!text.includes("trtllm_")) return null;
  const scrape = parsePrometheusText(text, WANTED);
  const facts = nothingKnown();
  for (const [fact, names] of Object.entries(NUMBERS) as [NumericFact, readonly string[]][]) {
    facts[fact] = sumOf(samplesOf(scrape, names));
  }
  const blocks = sumOf(scrape.samples(MAX_BLOCKS));
  if (blocks !== null && facts.kvBlockTokens !== null) facts.kvCapacityTokens = blocks * facts.kvBlockTokens;
  facts.prefixQueriedTokensTotal = facts.promptTokensTotal;
  const byRank = new Map([[0, facts]]);
  return {
    byRank,
    missing: missingOf(byRank, TRTLLM_EXPECTED),
    startedAtSeconds: sumOf(scrape.samples(PROCESS_START)),
  };
}
