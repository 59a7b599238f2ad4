import { z } from "zod";
import { missingOf, nothingKnown } from "../facts.ts";
import type { ScrapeResult } from "../vocabulary.ts";
import { TRTLLM_EXPECTED } from "./trtllmMetrics.ts";

const count = z.number().nonnegative().nullish().catch(null);

const Iteration = z.object({
  numActiveRequests: z.number().nonnegative(),
  numQueuedRequests: count,
  maxNumActiveRequests: count,
  kvCacheStats: z.object({ usedNumBlocks: count, maxNumBlocks: count, tokensPerBlock: count }).nullish().catch(null),
});

/**
 * Reads `/metrics` as TensorRT-LLM answers it: the statistics of each iteration since the last look, newest last. The
 * answer empties the engine's list, so an empty one means nothing new, and a second reader would halve what each sees.
 * Null if it is something else.
 */
export function readTrtllmIterations(json: unknown): ScrapeResult | null {
  if (!Array.isArray(json)) return null;
  if (json.length === 0) return { byRank: new Map(), missing: [] };
  const read = Iteration.safeParse(json.at(-1));
  if (!read.success) return null;
  const { numActiveRequests, numQueuedRequests, maxNumActiveRequests, kvCacheStats } = read.data;
  const facts = nothingKnown();
  facts.runningRequests = numActiveRequests;
  facts.waitingRequests = numQueuedRequests ?? null;
  facts.maxRunningRequests = maxNumActiveRequests ?? null;
  facts.kvBlockTokens = kvCacheStats?.tokensPerBlock ?? null;
  const blocks = kvCacheStats?.maxNumBlocks;
  if (typeof blocks === "number" && blocks > 0) {
    if (facts.kvBlockTokens !== null) facts.kvCapacityTokens = blocks * facts.kvBlockTokens;
    const used = kvCacheStats?.usedNumBlocks;
    if (typeof used === "number") facts.kvUsage = used / blocks;
  }
  const byRank = new Map([[0, facts]]);
  return { byRank, missing: [...missingOf(byRank, TRTLLM_EXPECTED), "promptTokensTotal", "generatedTokensTotal"] };
}
