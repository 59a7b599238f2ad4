import { GENERIC_PRIOR, PRIORS, type StepTimes } from "#src/hardware/stepTimes.ts";

/** Bytes of weights, and of one token's KV: 2 (key and value) x layers x KV heads x head size x 2 bytes (BF16). */
const LLAMA_8B = { weightBytes: 16.06e9, kvBytesPerToken: 2 * 32 * 8 * 128 * 2, contextTokens: 131_072 };
const MODELS: Readonly<Record<string, typeof LLAMA_8B>> = {
  "llama-3.1-8b": LLAMA_8B,
  "llama-3.1-70b": { weightBytes: 141.1e9, kvBytesPerToken: 2 * 80 * 8 * 128 * 2, contextTokens: 131_072 },
  "qwen3-32b": { weightBytes: 65.5e9, kvBytesPerToken: 2 * 64 * 8 * 128 * 2, contextTokens: 40_960 },
};

/** What the driver shows of each GPU's memory. */
const GPU_BYTES: Readonly<Record<string, number>> = {
  a100: 81_920 * 2 ** 20,
  h100: 81_559 * 2 ** 20,
  h200: 143_771 * 2 ** 20,
};

/** vLLM's classic `gpu_memory_utilization`, and what activations, graphs and buffers take of each GPU. */
const MEMORY_SHARE = 0.9;
const RESERVED_BYTES_PER_GPU = 2.5e9;

/** A model on a GPU: how fast its steps are and how many tokens of KV it holds. */
export interface Hardware {
  /** Key of the priors, e.g. `qwen3-32b/h200_tp2`; null if this pair is not in the table. */
  readonly prior: string | null;
  readonly times: StepTimes;
  readonly kvTokens: number;
  readonly kvBytesPerToken: number;
  readonly contextTokens: number;
}

/**
 * Looks a model up by its served name (`Qwen/Qwen3-32B` means `qwen3-32b`) and a GPU by `h100` (the least number of
 * them that the table has) or `h100_tp4`. A model that is not in the table behaves as llama-3.1-8b on one H100.
 * Qwen3-32B on two H200: (2 x 143771 MiB x 0.9 - 65.5 GB - 5 GB) / 256 KiB = 766 thousand tokens.
 */
export function hardwareFor(model: string, gpu: string): Hardware {
  const known = model.toLowerCase().split("/").at(-1) ?? "";
  const prior = [...PRIORS.keys()]
    .filter((key) => key === `${known}/${gpu}` || key.startsWith(`${known}/${gpu}_tp`))
    .sort()[0];
  const times = prior === undefined ? undefined : PRIORS.get(prior);
  if (prior === undefined || times === undefined) {
    const generic = capacityTokens("llama-3.1-8b", "h100_tp1");
    const { kvBytesPerToken, contextTokens } = LLAMA_8B;
    return { prior: null, times: GENERIC_PRIOR, kvTokens: generic, kvBytesPerToken, contextTokens };
  }
  const kvTokens = capacityTokens(known, prior.slice(known.length + 1));
  const { kvBytesPerToken, contextTokens } = MODELS[known] ?? LLAMA_8B;
  return { prior, times, kvTokens, kvBytesPerToken, contextTokens };
}

/**
 * What `hardwareFor` takes for a GPU and has times for: of a model in the table the GPUs it was measured on, of any
 * other model all of the table, as one stands in.
 */
export function knownGpus(model: string): readonly string[] {
  const pairs = [...PRIORS.keys()].map((key) => key.split("/") as [string, string]);
  const known = model.toLowerCase().split("/").at(-1) ?? "";
  const own = pairs.filter(([name]) => name === known);
  const gpus = (own.length > 0 ? own : pairs).map(([, gpu]) => gpu);
  return [...new Set(gpus.flatMap((gpu) => [gpu.split("_")[0]!, gpu]))].sort();
}

function capacityTokens(model: string, gpus: string): number {
  const [gpu = "", parallel = "tp1"] = gpus.split("_");
  const { weightBytes, kvBytesPerToken } = MODELS[model] ?? LLAMA_8B;
  const count = Number(parallel.slice(2));
  const bytes = count * ((GPU_BYTES[gpu] ?? 80e9) * MEMORY_SHARE - RESERVED_BYTES_PER_GPU) - weightBytes;
  return Math.floor(bytes / kvBytesPerToken);
}
