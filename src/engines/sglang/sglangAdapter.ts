import { askForJson, askForText, engineFailed, healthByStatus } from "../answers.ts";
import type { EngineAdapter } from "../engineAdapter.ts";
import { askForModels, requireModels } from "../modelList.ts";
import { readSglangLoads } from "./sglangLoads.ts";
import { readSglangMetrics, SGLANG_FACT_SOURCES } from "./sglangMetrics.ts";
import { askForServerInfo } from "./sglangServerInfo.ts";

export const sglangAdapter: EngineAdapter = {
  kind: "sglang",

  async probe(ask) {
    const info = await askForServerInfo(ask);
    if (info === null) return null;
    const list = await askForModels(ask);
    return {
      kind: "sglang",
      version: info.version,
      dataParallelRanks: info.dataParallelRanks,
      models: list?.models ?? [],
      maxRunningRequests: info.maxRunningRequests,
      kvCapacityTokens: info.kvCapacityTokens,
      kvBlockTokens: info.pageTokens,
      prefixCachingEnabled: info.prefixCachingEnabled,
    };
  },

  async health(ask) {
    return healthByStatus(await ask("/health"));
  },

  models: requireModels,

  async scrape(ask) {
    const text = await askForText(ask, "/metrics");
    const scrape = text === null ? null : readSglangMetrics(text);
    if (scrape !== null) return scrape;
    const loads = readSglangLoads(await askForJson(ask, "/v1/loads?include=core"));
    if (loads === null) throw engineFailed("SGLang has neither metrics (--enable-metrics) nor /v1/loads.");
    return loads;
  },

  rankHeader: (rank) => ["x-data-parallel-rank", String(rank)],
  // Its request id is the body's `rid`.
  requestIdHeader: null,
  adapterByModelName: true,
  modelNameFor: (base, adapter) => `${base}:${adapter}`,
  factSources: SGLANG_FACT_SOURCES,
};
