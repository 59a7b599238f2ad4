import { z } from "zod";
import { askForJson, askForText, engineFailed, healthByStatus } from "../answers.ts";
import type { EngineAdapter } from "../engineAdapter.ts";
import { askForModels, requireModels } from "../modelList.ts";
import { readVllmMetrics, VLLM_FACT_SOURCES } from "./vllmMetrics.ts";

const Version = z.object({ version: z.string() });

export const vllmAdapter: EngineAdapter = {
  kind: "vllm",

  async probe(ask) {
    // TensorRT-LLM has /version too; without statistics (--disable-log-stats) only the model card tells them apart.
    const version = Version.safeParse(await askForJson(ask, "/version"));
    if (!version.success) return null;
    const metrics = await askForText(ask, "/metrics");
    const list = await askForModels(ask);
    const hasSeries = metrics !== null && metrics.includes("vllm:");
    if (!hasSeries && list?.ownedBy !== "vllm") return null;
    const { byRank } = readVllmMetrics(metrics ?? "");
    const first = byRank.values().next().value;
    return {
      kind: "vllm",
      version: version.data.version,
      dataParallelRanks: Math.max(1, byRank.size),
      models: list?.models ?? [],
      maxRunningRequests: null,
      kvCapacityTokens: first?.kvCapacityTokens ?? null,
      kvBlockTokens: first?.kvBlockTokens ?? null,
      prefixCachingEnabled: first?.prefixCachingEnabled ?? null,
    };
  },

  async health(ask) {
    return healthByStatus(await ask("/health"));
  },

  models: requireModels,

  async scrape(ask) {
    const text = await askForText(ask, "/metrics");
    if (text === null) throw engineFailed("vLLM's /metrics does not answer 200.");
    return readVllmMetrics(text);
  },

  rankHeader: (rank) => ["x-data-parallel-rank", String(rank)],
  requestIdHeader: "x-request-id",
  adapterByModelName: true,
  modelNameFor: (_base, adapter) => adapter,
  factSources: VLLM_FACT_SOURCES,
};
