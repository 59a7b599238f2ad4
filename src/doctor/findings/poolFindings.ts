import type { FindingKind } from "./finding.ts";

/** What can be wrong among the engines that serve one model, or with all of them. */
export const POOL_FINDINGS = {
  block_sizes_differ: {
    severity: "warn",
    effect: "Hits are counted in the smallest block; a replica whose block is no multiple of it has only guessed hits.",
    mend: {
      vllm: "the same --block-size everywhere",
      sglang: "the same --page-size everywhere (its default, 1, is too small for events; 16 is usual)",
      trtllm: "the same kv_cache_config.tokens_per_block everywhere",
    },
  },
  hash_algorithms_differ: {
    severity: "info",
    effect: "None: the router has hashes of its own. What shares KV between engines by their hashes finds nothing.",
    mend: { vllm: "the same --prefix-caching-hash-algo everywhere (sha256_cbor is the portable one)" },
  },
  hash_seeds_differ: {
    severity: "info",
    effect: "None: the router has hashes of its own. What shares KV between engines by their hashes finds nothing.",
    mend: { vllm: "the same PYTHONHASHSEED and --prefix-caching-hash-algo sha256_cbor everywhere" },
  },
  tokenizers_differ: {
    severity: "error",
    effect:
      "Prompts are different tokens on different replicas: what one holds is predicted wrongly on another, and answers may differ.",
    mend: {
      vllm: "the same model revision, --tokenizer and --tokenizer-revision everywhere",
      sglang: "the same --tokenizer-path everywhere",
    },
  },
  tokenizer_missing: {
    severity: "warn",
    effect:
      "KV events tell who has which tokens, but prompts are known by their text only: hits are guessed from the router's own traffic.",
    mend: "Set models.<name>.tokenizer to a folder with the model's tokenizer.json, tokenizer_config.json and chat template.",
  },
  models_differ: {
    severity: "warn",
    effect: "Requests that name the missing model find fewer replicas.",
    mend: {
      vllm: "the same --served-model-name everywhere, or models.<name>.aliases",
      sglang: "the same --served-model-name everywhere, or models.<name>.aliases",
      llamacpp: "the same --alias everywhere, or models.<name>.aliases",
    },
  },
  adapters_differ: {
    severity: "info",
    effect: "Requests for an adapter go to the replicas that have it, whatever their load.",
    mend: {
      vllm: "the same --lora-modules everywhere, or POST /v1/load_lora_adapter with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True",
      sglang: "the same --lora-paths everywhere, or POST /load_lora_adapter",
    },
  },
  max_model_len_differs: {
    severity: "warn",
    effect: "Long requests fit on some replicas only.",
    mend: {
      vllm: "the same --max-model-len everywhere",
      sglang: "the same --context-length everywhere",
      trtllm: "the same --max_seq_len everywhere",
      llamacpp: "the same --ctx-size and --parallel everywhere",
    },
  },
  versions_differ: {
    severity: "info",
    effect: "None by itself; speeds and cache behaviour may differ between versions.",
    mend: "Finish the roll-out.",
  },
  model_not_served: {
    severity: "error",
    effect: "Requests for it get 404.",
    mend: {
      vllm: "--served-model-name, or correct the name under models.",
      sglang: "--served-model-name, or correct the name under models.",
      trtllm: "Correct the name under models.",
      llamacpp: "--alias, or correct the name under models.",
    },
  },
} as const satisfies Record<string, FindingKind>;
