import type { ApiKind } from "./apiKind.ts";
import { type Field, type FieldKind, FieldTable } from "./fieldTable.ts";

/** Largest rank of an output limit, plus one. */
export const OUTPUT_LIMITS = 5;

const COMMON: readonly (readonly [name: string, kind: FieldKind, rank?: number])[] = [
  ["model", "model"],
  ["stream", "stream"],
  ["stream_options", "streamOptions"],
  ["n_predict", "outputLimit", 0],
  ["max_tokens", "outputLimit", 1],
  ["max_new_tokens", "outputLimit", 2],
  ["max_output_tokens", "outputLimit", 3],
  ["max_completion_tokens", "outputLimit", 4],
  ["n", "sequences"],
  ["user", "user"],
  ["safety_identifier", "safetyIdentifier"],
  ["metadata", "metadata"],
  ["prompt_cache_key", "promptCacheKey"],
  ["session_id", "sessionId"],
  ["cache_salt", "cacheSalt"],
  ["priority", "priority"],
  ["prediction", "prediction"],
  ["sampling_params", "settings"],
  ["vllm_xargs", "settings"],
  ["extra_args", "settings"],
  ["extra_key", "root", 0],
  ["lora_path", "root", 1],
  ["lora_request", "root", 2],
  ["lora", "root", 3],
  ["chat_template", "root", 4],
  ["chat_template_kwargs", "root", 5],
  ["reasoning_effort", "root", 6],
  ["mm_processor_kwargs", "root", 7],
  ["multi_modal_uuids", "rootMedia", 8],
  ["image_data", "rootMedia", 9],
  ["video_data", "rootMedia", 10],
  ["audio_data", "rootMedia", 11],
  ["features", "rootMedia", 12],
  ["prompt_embeds", "rootMedia", 13],
  ["input_embeds", "rootMedia", 14],
];

const CONVERSATION = ["messages", "conversation", 9] as const;
const TOOLS = [
  ["tools", "objects", 0],
  ["functions", "objects", 1],
  ["documents", "objects", 2],
] as const;

/** Where each API keeps its prompt. The rank is the order in which engines render the fields. */
const PROMPT_FIELDS: Readonly<Record<ApiKind, readonly (readonly [name: string, kind: FieldKind, rank: number])[]>> = {
  chat: [...TOOLS, CONVERSATION],
  completions: [
    ["prompt", "input", 0],
    ["suffix", "input", 1],
  ],
  responses: [
    ["previous_response_id", "root", 15],
    ["conversation", "root", 16],
    ["prompt", "root", 17],
    ...TOOLS,
    ["instructions", "system", 3],
    ["input", "conversation", 9],
  ],
  messages: [...TOOLS, ["system", "system", 3], CONVERSATION],
  count_tokens: [...TOOLS, ["system", "system", 3], CONVERSATION],
  embeddings: [["input", "input", 0], ["content", "input", 1], ...TOOLS, CONVERSATION],
  tokenize: [["prompt", "input", 0], ["content", "input", 1], ...TOOLS, CONVERSATION],
  detokenize: [["tokens", "input", 0]],
  score: [
    ["text_1", "input", 0],
    ["queries", "input", 1],
    ["data_1", "input", 2],
    ["query", "input", 3],
    ["text_2", "input", 4],
    ["documents", "input", 5],
    ["data_2", "input", 6],
    ["items", "input", 7],
  ],
  rerank: [
    ["query", "input", 0],
    ["documents", "input", 1],
    ["texts", "input", 2],
  ],
  pooling: [["input", "input", 0], ["data", "input", 1], ["text", "input", 2], ...TOOLS, CONVERSATION],
  classify: [["input", "input", 0], ["text", "input", 1], CONVERSATION],
  audio: [],
  sglang_generate: [
    ["text", "input", 0],
    ["input_ids", "input", 1],
  ],
  vllm_generate: [["token_ids", "input", 0]],
  llamacpp_completion: [
    ["input_extra", "objects", 0],
    ["input_prefix", "input", 1],
    ["input_suffix", "input", 2],
    ["prompt", "input", 3],
  ],
  other: [],
};

const TABLES = new Map<ApiKind, FieldTable>();
for (const api of Object.keys(PROMPT_FIELDS) as ApiKind[]) {
  const fields = new Map<string, Field>();
  for (const [name, kind, rank = 0] of [...COMMON, ...PROMPT_FIELDS[api]]) fields.set(name, { kind, rank });
  TABLES.set(api, new FieldTable(fields));
}

export function fieldsOf(api: ApiKind): FieldTable {
  return TABLES.get(api)!;
}
