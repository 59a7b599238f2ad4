import type { Generation } from "../generation.ts";

/** Usage as an answer that is not streamed carries it; chat reports blocks newly cached, completions do not. */
export function unaryUsage(generation: Generation, createdCacheTokens: 0 | null): Record<string, unknown> {
  return {
    ...tokenCounts(generation),
    prompt_tokens_details: generation.reportsCachedTokens
      ? { cached_tokens: generation.cachedTokens, created_cache_tokens: createdCacheTokens, multimodal_tokens: null }
      : null,
    completion_tokens_details: null,
  };
}

/** Usage as the last chunk of a stream carries it. */
export function streamUsage(generation: Generation, kind: "chat" | "completion"): Record<string, unknown> {
  if (!generation.reportsCachedTokens) return tokenCounts(generation);
  const cached = { cached_tokens: generation.cachedTokens };
  return {
    ...tokenCounts(generation),
    prompt_tokens_details: kind === "chat" ? { ...cached, created_cache_tokens: 0 } : cached,
  };
}

/** Usage so far, as each chunk carries it under `continuous_usage_stats`. */
export function runningUsage(generation: Generation, kind: "chat" | "completion"): Record<string, unknown> {
  const counts = tokenCounts(generation);
  return kind === "chat" ? { ...counts, completion_tokens_details: null } : counts;
}

function tokenCounts(generation: Generation): Record<string, number> {
  const { promptTokens, outputTokens } = generation;
  return { prompt_tokens: promptTokens, total_tokens: promptTokens + outputTokens, completion_tokens: outputTokens };
}
