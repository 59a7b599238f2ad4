import type { FindingKind } from "./finding.ts";

/** What can be wrong with one engine. */
export const ENGINE_FINDINGS = {
  engine_unreachable: {
    severity: "error",
    effect: "It gets no requests.",
    mend: "Start the engine, or correct its url; a firewall between router and engine does this too.",
  },
  engine_unknown: {
    severity: "error",
    effect: "It gets no requests: nothing is known of its models or its load.",
    mend: "Point the url at the engine itself (vLLM, SGLang, trtllm-serve, llama-server), not at a proxy or another service.",
  },
  engine_kind_differs: {
    severity: "error",
    effect: "It gets no requests until the configuration names what it is.",
    mend: "Set engines[].engine to the kind that answers, or leave it out: then the engine is asked.",
  },
  engine_not_ready: {
    severity: "error",
    effect: "It gets no requests while its health route says so.",
    mend: "Wait until the engine has loaded its model; its log says what it is doing.",
  },
  engine_asleep: {
    severity: "error",
    effect: "Requests sent to it are not answered until it wakes.",
    mend: {
      vllm: "POST /wake_up (an engine started with --enable-sleep-mode).",
      sglang: "POST /resume_memory_occupation.",
      trtllm: "POST /resume_memory.",
      llamacpp: "Start it without --sleep-idle-seconds, or send it a request.",
    },
  },
  ranks_differ: {
    severity: "error",
    effect: "Requests are pinned to ranks that are not there, or some ranks get none.",
    mend: {
      vllm: "Set engines[].dataParallelRanks to the engine's --data-parallel-size, or leave it out.",
      sglang: "Set engines[].dataParallelRanks to the engine's --dp-size, or leave it out.",
      trtllm: "Leave engines[].dataParallelRanks out: no request can choose a rank.",
      llamacpp: "Leave engines[].dataParallelRanks out: it has no ranks.",
    },
  },
  no_models: {
    severity: "error",
    effect: "It gets no requests: it serves no model that a request could name.",
    mend: {
      vllm: "Start it with a model, under the name of --served-model-name.",
      sglang: "Start it with --model-path and --served-model-name.",
      trtllm: "Start trtllm-serve with a model.",
      llamacpp: "Start it with --model, under the name of --alias.",
    },
  },
  metrics_unavailable: {
    severity: "error",
    effect: "Load from other routers is not seen, and its memory and slots are guesses.",
    mend: {
      vllm: "Let the router reach /metrics.",
      sglang: "--enable-metrics",
      trtllm: "return_perf_metrics: true in the engine's configuration.",
      llamacpp: "--metrics",
    },
  },
  metrics_missing: {
    severity: "warn",
    effect: "The terms of the price that need these facts use what the router counts itself, or priors.",
    mend: {
      vllm: "Start it without --disable-log-stats; a version that renamed a metric needs a newer Kvasir.",
      sglang: "--enable-metrics; a version that renamed a metric needs a newer Kvasir.",
      trtllm: "return_perf_metrics: true in the engine's configuration.",
      llamacpp: "--metrics",
    },
  },
  limits_assumed: {
    severity: "warn",
    effect:
      "With too high a guess requests queue in the engine, where they can't be placed anew; with too low a one slots stay empty.",
    mend: {
      vllm: "Set engines[].maxRunningRequests to the engine's --max-num-seqs, which it does not publish; engines[].kvCapacityTokens to the GPU KV cache size of its log.",
      sglang:
        "Set engines[].maxRunningRequests to --max-running-requests and engines[].kvCapacityTokens to max_total_num_tokens of its log.",
      trtllm:
        "Set engines[].maxRunningRequests to --max_batch_size and engines[].kvCapacityTokens, or return_perf_metrics: true.",
      llamacpp: "Set engines[].maxRunningRequests to --parallel and engines[].kvCapacityTokens to --ctx-size.",
    },
  },
  prefix_caching_off: {
    severity: "error",
    effect: "Every prompt is computed whole. Placements by prefix gain nothing here and unbalance the load.",
    mend: {
      vllm: "--enable-prefix-caching",
      sglang: "Start it without --disable-radix-cache.",
      trtllm: "kv_cache_config: {enable_block_reuse: true}",
      llamacpp: "Start it without --no-cache-prompt.",
    },
  },
  clock_skew: {
    severity: "warn",
    effect:
      "Ages of its events and its log lines don't compare with the router's. Choices are not affected: they use the router's clock.",
    mend: "Synchronise the clocks of engine and router (NTP or chrony).",
  },
  probe_failed: {
    severity: "error",
    effect: "Requests fail on this engine.",
    mend: "See the engine's log; the same request by hand is in the message.",
  },
  cached_tokens_missing: {
    severity: "warn",
    effect:
      "Predicted hits can't be compared with real ones: the index of past placements is not corrected, and wrong events go unnoticed.",
    mend: {
      vllm: "--enable-prompt-tokens-details",
      sglang: "--enable-cache-report",
      trtllm: "A version that fills usage.prompt_tokens_details.",
      llamacpp: "A version that fills usage.prompt_tokens_details, and no --no-cache-prompt.",
    },
  },
  repeat_not_cached: {
    severity: "warn",
    effect: "The same prompt twice was computed twice: hits that the index predicts do not happen.",
    mend: {
      vllm: "--enable-prefix-caching; more KV memory (--gpu-memory-utilization) if blocks are evicted at once.",
      sglang: "Start it without --disable-radix-cache; more KV memory (--mem-fraction-static).",
      trtllm: "kv_cache_config: {enable_block_reuse: true}",
      llamacpp: "Start it without --no-cache-prompt.",
    },
  },
  tokenizer_differs: {
    severity: "error",
    effect: "Blocks of this model are never recognised: every prediction is a miss.",
    mend: "Give models.<name>.tokenizer the folder from which the engine loads its tokenizer (vLLM's --tokenizer, else the model's).",
  },
  tokenizer_unusable: {
    severity: "error",
    effect: "Prompts of this model are known by their text only, so KV events can't tell who has them.",
    mend: "Give models.<name>.tokenizer a folder with tokenizer.json and tokenizer_config.json, of a sort that can be followed exactly.",
  },
  template_unusable: {
    severity: "warn",
    effect: "Chats of this model are known by their text only, so KV events can't tell who has them.",
    mend: "Set models.<name>.tokenizer.chatTemplateFile to the engine's --chat-template, or put it into the folder as chat_template.jinja.",
  },
  template_differs: {
    severity: "error",
    effect: "Blocks of chats are never recognised: every prediction for a chat is a miss.",
    mend: "Set chatTemplateFile, contentFormat and templateArguments of models.<name>.tokenizer to the engine's --chat-template, --chat-template-content-format and --default-chat-template-kwargs.",
  },
} as const satisfies Record<string, FindingKind>;
