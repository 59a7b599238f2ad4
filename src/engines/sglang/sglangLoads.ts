import { z } from "zod";
import { nothingKnown, type Gathered } from "../facts.ts";
import type { ScrapeResult } from "../vocabulary.ts";
import { SGLANG_EXPECTED } from "./sglangMetrics.ts";

const count = z.number().nonnegative().nullish().catch(null);

const Loads = z.object({
  loads: z.array(
    z.object({
      dp_rank: z.number().int().nonnegative().catch(0),
      num_running_reqs: count,
      num_waiting_reqs: count,
      num_used_tokens: count,
      max_total_num_tokens: count,
      max_running_requests: count,
      token_usage: count,
    }),
  ),
});

/**
 * Reads `/v1/loads`, which SGLang answers without `--enable-metrics`; null if it is something else. It has no counters,
 * so they are listed as missing: without them a restart between two looks goes unseen.
 */
export function readSglangLoads(json: unknown): ScrapeResult | null {
  const read = Loads.safeParse(json);
  if (!read.success || read.data.loads.length === 0) return null;
  const byRank = new Map<number, Gathered>();
  for (const load of read.data.loads) {
    const facts = nothingKnown();
    facts.runningRequests = load.num_running_reqs ?? null;
    facts.waitingRequests = load.num_waiting_reqs ?? null;
    facts.kvCapacityTokens = load.max_total_num_tokens ?? null;
    facts.maxRunningRequests = load.max_running_requests ?? null;
    facts.kvUsage = load.token_usage ?? shareOf(load.num_used_tokens, load.max_total_num_tokens);
    byRank.set(load.dp_rank, facts);
  }
  const lacking = SGLANG_EXPECTED.filter((fact) => [...byRank.values()].some((facts) => facts[fact] === null));
  return { byRank, missing: [...lacking, "promptTokensTotal", "generatedTokensTotal"] };
}

function shareOf(used: number | null | undefined, total: number | null | undefined): number | null {
  return typeof used === "number" && typeof total === "number" && total > 0 ? used / total : null;
}
