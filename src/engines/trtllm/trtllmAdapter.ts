import { z } from "zod";
import { askForJson, askForText, engineFailed, healthByStatus } from "../answers.ts";
import type { AskEngine, EngineAdapter } from "../engineAdapter.ts";
import { askForModels, requireModels } from "../modelList.ts";
import type { ScrapeResult } from "../vocabulary.ts";
import { readTrtllmIterations } from "./trtllmIterations.ts";
import { readTrtllmMetrics, TRTLLM_FACT_SOURCES } from "./trtllmMetrics.ts";

const Version = z.object({ version: z.string() });

/** The Prometheus route where it is on, else the JSON one; null if neither is TensorRT-LLM's. */
async function askForFacts(ask: AskEngine): Promise<ScrapeResult | null> {
  const text = await askForText(ask, "/prometheus/metrics");
  const scrape = text === null ? null : readTrtllmMetrics(text);
  return scrape ?? readTrtllmIterations(await askForJson(ask, "/metrics"));
}

export const trtllmAdapter: EngineAdapter = {
  kind: "trtllm",

  async probe(ask) {
    const list = await askForModels(ask);
    const scrape = await askForFacts(ask);
    // An empty JSON list could be anybody's.
    const hasFacts = scrape !== null && scrape.byRank.size > 0;
    if (!hasFacts && list?.ownedBy !== "tensorrt_llm") return null;
    const version = Version.safeParse(await askForJson(ask, "/version"));
    const first = scrape?.byRank.values().next().value;
    return {
      kind: "trtllm",
      version: version.success ? version.data.version : null,
      // Attention data parallelism is internal to this engine: no header chooses a rank.
      dataParallelRanks: 1,
      models: list?.models ?? [],
      maxRunningRequests: first?.maxRunningRequests ?? null,
      kvCapacityTokens: first?.kvCapacityTokens ?? null,
      kvBlockTokens: first?.kvBlockTokens ?? null,
      prefixCachingEnabled: null,
    };
  },

  async health(ask) {
    return healthByStatus(await ask("/health"));
  },

  models: requireModels,

  async scrape(ask) {
    const scrape = await askForFacts(ask);
    if (scrape === null) throw engineFailed("TensorRT-LLM has neither /prometheus/metrics nor JSON /metrics.");
    return scrape;
  },

  rankHeader: () => null,
  requestIdHeader: null,
  adapterByModelName: false,
  modelNameFor: () => null,
  factSources: TRTLLM_FACT_SOURCES,
};
