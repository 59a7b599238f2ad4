import { z } from "zod";
import { counter, missingOf, nothingKnown, samplesOf, sumOf, type FactSources, type NumericFact } from "../facts.ts";
import { parsePrometheusText } from "../prometheusText.ts";
import type { Fact, ScrapeResult } from "../vocabulary.ts";

const NUMBERS = {
  runningRequests: ["llamacpp:requests_processing"],
  waitingRequests: ["llamacpp:requests_deferred"],
  promptTokensTotal: counter("llamacpp:prompt_tokens"),
  generatedTokensTotal: counter("llamacpp:tokens_predicted"),
  draftTokensTotal: counter("llamacpp:spec_decode_num_draft_tokens"),
  acceptedDraftTokensTotal: counter("llamacpp:spec_decode_num_accepted_tokens"),
  // Gone from newer builds, so nobody expects it.
  kvUsage: ["llamacpp:kv_cache_usage_ratio"],
} as const satisfies Partial<Record<NumericFact, readonly string[]>>;

export const LLAMACPP_FACT_SOURCES: FactSources = { ...NUMBERS, maxRunningRequests: ["/slots"] };

const EXPECTED: readonly Fact[] = ["runningRequests", "waitingRequests", "promptTokensTotal", "generatedTokensTotal"];

const WANTED: ReadonlySet<string> = new Set(Object.values(NUMBERS).flat());

/** Reads `/metrics` (there with `--metrics`); null if it has no series of llama.cpp. */
export function readLlamacppMetrics(text: string): ScrapeResult | null {
  if (!text.includes("llamacpp:")) return null;
  const scrape = parsePrometheusText(text, WANTED);
  const facts = nothingKnown();
  for (const [fact, names] of Object.entries(NUMBERS) as [NumericFact, readonly string[]][]) {
    facts[fact] = sumOf(samplesOf(scrape, names));
  }
  const byRank = new Map([[0, facts]]);
  return { byRank, missing: missingOf(byRank, EXPECTED) };
}

const Slots = z.array(z.object({ is_processing: z.boolean() })).min(1);

/** Reads `/slots`, which is there without `--metrics` but knows neither a queue nor counters; null if it is something else. */
export function readLlamacppSlots(json: unknown): ScrapeResult | null {
  const slots = Slots.safeParse(json);
  if (!slots.success) return null;
  const facts = nothingKnown();
  facts.runningRequests = slots.data.filter((slot) => slot.is_processing).length;
  facts.maxRunningRequests = slots.data.length;
  const byRank = new Map([[0, facts]]);
  return { byRank, missing: missingOf(byRank, EXPECTED) };
}
