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

/** `GET /is_sleeping` */
export function answerIsSleeping(exchange: Exchange): void {
  exchange.answerJson({ is_sleeping: exchange.context.faults.current.asleep });
}

export function answerLoad(exchange: Exchange): void {
  const { running, waiting } = exchange.context.incarnation;
  exchange.answerJson({ server_load: running + waiting });
}

/** `GET /server_info`: the configuration as one text, or as JSON with `?config_format=json`. */
export function answerServerInfo(exchange: Exchange): void {
  const { options } = exchange.context;
  const asJson = exchange.query.get("config_format") === "json";
  exchange.answerJson({
    vllm_config: asJson
      ? vllmConfig(exchange)
      : `model='${options.model}', max_seq_len=${options.maxModelTokens}, data_parallel_size=${options.dataParallelRanks}, enable_prefix_caching=${options.prefixCaching ? "True" : "False"}, max_num_seqs=${options.maxRunning}, max_num_batched_tokens=${options.maxBatchedTokens}`,
  });
}

function vllmConfig({ context: { options, kvEvents } }: Exchange): unknown {
  return {
    model_config: { model: options.model, served_model_name: options.model, max_model_len: options.maxModelTokens },
    cache_config: {
      block_size: options.blockTokens,
      enable_prefix_caching: options.prefixCaching,
      prefix_caching_hash_algo: options.hashAlgorithm,
      num_gpu_blocks: options.kvTokens / options.blockTokens,
    },
    scheduler_config: {
      max_num_seqs: options.maxRunning,
      max_num_batched_tokens: options.maxBatchedTokens,
      policy: options.policy,
    },
    parallel_config: { data_parallel_size: options.dataParallelRanks },
    kv_events_config:
      kvEvents === null || options.kvEvents === null
        ? null
        : {
            enable_kv_cache_events: true,
            publisher: "zmq",
            endpoint: anyHost(kvEvents.events),
            replay_endpoint: kvEvents.replay === null ? null : anyHost(kvEvents.replay),
            buffer_steps: options.kvEvents.bufferSteps,
            hwm: options.kvEvents.highWaterMark,
            max_queue_size: 100_000,
            topic: kvEvents.topic,
          },
  };
}

/** An engine shows its addresses as it was given them: bound on every interface. */
function anyHost(address: string): string {
  return `tcp://*${address.slice(address.lastIndexOf(":"))}`;
}

export function answerMetrics(exchange: Exchange): void {
  const { incarnation, options, faults } = exchange.context;
  const text = metricsText(incarnation, options, faults.current);
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
