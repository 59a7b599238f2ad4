import { askForText } from "#src/engines/answers.ts";
import type { AskEngine } from "#src/engines/engineAdapter.ts";
import { parsePrometheusText } from "#src/engines/prometheusText.ts";

const CACHE_CONFIG = "vllm:cache_config_info";

/** How vLLM hashes blocks, as its metrics name it; null: not told. */
export async function readHashAlgorithm(ask: AskEngine): Promise<string | null> {
  const text = await askForText(ask, "/metrics").catch(() => null);
  if (text === null) return null;
  const [config] = parsePrometheusText(text, new Set([CACHE_CONFIG])).samples(CACHE_CONFIG);
  return config?.labels["prefix_caching_hash_algo"] ?? null;
}
