import { metricsText } from "../metrics/metricsText.ts";
import type { Exchange } from "./exchange.ts";

/** `GET /health`: no body, as vLLM. */
export function answerHealth(exchange: Exchange): void {
  const { healthDelayMs } = exchange.context.faults.current;
  if (healthDelayMs === 0) exchange.answer(200, null, "");
  else setTimeout(() => exchange.answer(200, null, ""), healthDelayMs).unref();
}

export function answerPing(exchange: Exchange): void {
  exchange.answer(200, null, "");
}

export function answerVersion(exchange: Exchange): void {
  exchange.answerJson({ version: exchange.context.options.version });
}

export function answerLoad(exchange: Exchange): void {
  const { running, waiting } = exchange.context.incarnation;
  exchange.answerJson({ server_load: running + waiting });
}

export function answerServerInfo(exchange: Exchange): void {
  const { options } = exchange.context;
  exchange.answerJson({
    vllm_config: `model='${options.model}', max_seq_len=${options.maxModelTokens}, data_parallel_size=${options.dataParallelRanks}, enable_prefix_caching=${options.prefixCaching ? "True" : "False"}, max_num_seqs=${options.maxRunning}, max_num_batched_tokens=${options.maxBatchedTokens}`,
  });
}

export function answerMetrics(exchange: Exchange): void {
  const { incarnation, options, faults } = exchange.context;
  const text = metricsText(incarnation, options, faults.current.missingMetrics);
  exchange.answer(200, "text/plain; version=1.0.0; charset=utf-8", text);
}

export function answerResetPrefixCache(exchange: Exchange): void {
  exchange.answerJson({ success: exchange.context.incarnation.clearCache() });
}

/** `GET /v1/models`: the base model, then its adapters. */
export function answerModels(exchange: Exchange): void {
  const { options, incarnation } = exchange.context;
  const created = Math.floor(incarnation.startedAtSeconds);
  const card = (id: string, root: string, parent: string | null, maxModelTokens: number | null): unknown => ({
    id,
    object: "model",
    created,
    owned_by: "vllm",
    root,
    parent,
    max_model_len: maxModelTokens,
    permission: [
      {
        id: `modelperm-${exchange.requestId}`,
        object: "model_permission",
        created,
        allow_create_engine: false,
        allow_sampling: true,
        allow_logprobs: true,
        allow_search_indices: false,
        allow_view: true,
        allow_fine_tuning: false,
        organization: "*",
        group: null,
        is_blocking: false,
      },
    ],
  });
  exchange.answerJson({
    object: "list",
    data: [
      card(options.model, options.model, null, options.maxModelTokens),
      ...[...incarnation.adapters].map(([name, root]) => card(name, root, options.model, null)),
    ],
  });
}
