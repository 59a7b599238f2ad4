/** The APIs whose requests Kvasir can read. `other`: routed by `model`, forwarded untouched. */
export type ApiKind =
  | "chat"
  | "completions"
  | "responses"
  | "messages"
  | "count_tokens"
  | "embeddings"
  | "tokenize"
  | "detokenize"
  | "score"
  | "rerank"
  | "pooling"
  | "classify"
  | "audio"
  | "sglang_generate"
  | "vllm_generate"
  | "llamacpp_completion"
  | "other";

const API_BY_PATH: ReadonlyMap<string, ApiKind> = new Map<string, ApiKind>([
  ["/v1/chat/completions", "chat"],
  ["/chat/completions", "chat"],
  ["/v1/completions", "completions"],
  ["/v1/responses", "responses"],
  ["/responses", "responses"],
  ["/v1/messages", "messages"],
  ["/v1/messages/count_tokens", "count_tokens"],
  ["/v1/embeddings", "embeddings"],
  ["/embeddings", "embeddings"],
  ["/embedding", "embeddings"],
  ["/tokenize", "tokenize"],
  ["/v1/tokenize", "tokenize"],
  ["/detokenize", "detokenize"],
  ["/v1/detokenize", "detokenize"],
  ["/score", "score"],
  ["/v1/score", "score"],
  ["/rerank", "rerank"],
  ["/reranking", "rerank"],
  ["/v1/rerank", "rerank"],
  ["/v1/reranking", "rerank"],
  ["/v2/rerank", "rerank"],
  ["/pooling", "pooling"],
  ["/classify", "classify"],
  ["/v1/classify", "classify"],
  ["/v1/audio/transcriptions", "audio"],
  ["/v1/audio/translations", "audio"],
  ["/generate", "sglang_generate"],
  ["/inference/v1/generate", "vllm_generate"],
  ["/completion", "llamacpp_completion"],
  ["/completions", "llamacpp_completion"],
  ["/infill", "llamacpp_completion"],
]);

/** Those that generate tokens; the others end with the prompt. */
const GENERATING: ReadonlySet<ApiKind> = new Set<ApiKind>([
  "chat",
  "completions",
  "responses",
  "messages",
  "audio",
  "sglang_generate",
  "vllm_generate",
  "llamacpp_completion",
]);

/**
 * Routes that change an engine or other people's requests. They are the operator's: no client's request may go there.
 * (An abort with its id removed would abort everything on some engines.)
 */
const CONTROL_PATH = new RegExp(
  "^/(v1/|inference/v1/)?(" +
    [
      "abort_requests?",
      "(load|unload)_lora_adapter(_from_tensors)?",
      "lora-adapters",
      "flush_cache|reset_(prefix|mm|encoder)_cache|clear_hicache_storage_backend|kv_cache_events",
      "sleep|wake_up|pause|resume|pause_generation|continue_generation|slow_down|set_internal_state",
      "(release|resume)_memory(_occupation)?",
      "collective_rpc|update_weights.*|init_weights.*|destroy_weights.*|get_weights.*|weights_checker",
      "(start|stop)_(profile|expert_distribution_record)|dump_expert_distribution_record|configure_logging",
      "open_session|close_session|server_info|get_server_info|scale_elastic_ep|is_scaling_elastic_ep",
      "slots(/.*)?|props|models/(load|unload)",
    ].join("|") +
    ")/?$",
);

/** Path of a request target, without its query. */
function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

/** Only POST carries a prompt; everything else is `other`. */
export function apiKindOf(method: string, target: string): ApiKind {
  return method === "POST" ? (API_BY_PATH.get(pathOf(target)) ?? "other") : "other";
}

export function generates(api: ApiKind): boolean {
  return GENERATING.has(api);
}

/** True for an engine's control routes, which the gateway must refuse to clients. */
export function isEngineControlPath(target: string): boolean {
  return CONTROL_PATH.test(pathOf(target));
}
