import { hardwareFor } from "./kvCapacity.ts";
import { DEFAULT_KV_EVENTS, type KvEventOptions, type ResolvedKvEventOptions } from "./events/eventOptions.ts";
import type { StepTimes } from "#src/hardware/stepTimes.ts";
import type { AnswerLength } from "./tokens/outputLength.ts";

/** How an emulated engine is set up. Everything has a default. */
export interface EmulatedEngineOptions {
  /** Name under which the model is served; also looks up times and KV capacity (see `hardwareFor`). */
  readonly model?: string;
  /** `h100`, `h200`, `a100`, or with the number of them: `h100_tp4`. */
  readonly gpu?: string;
  readonly host?: string;
  /** 0: any free port. */
  readonly port?: number;
  /** Real milliseconds for one modelled millisecond; 0.1 is ten times faster than the GPU. */
  readonly timeScale?: number;
  readonly maxRunning?: number;
  readonly maxBatchedTokens?: number;
  readonly kvTokens?: number;
  readonly blockTokens?: number;
  /** Host memory in tokens, to which full blocks are copied (vLLM's KV offloading); 0 (default): none. */
  readonly hostKvTokens?: number;
  /** How fast blocks come back from the host; 25 GB/s is what PCIe 4.0 with 16 lanes gives. */
  readonly hostLinkGBps?: number;
  readonly maxModelTokens?: number;
  readonly prefixCaching?: boolean;
  readonly policy?: "fcfs" | "priority";
  readonly adapters?: readonly string[];
  readonly maxResidentAdapters?: number;
  readonly adapterLoadMs?: number;
  readonly dataParallelRanks?: number;
  /** Step times instead of the table's. */
  readonly times?: StepTimes;
  /** Folder of the model's tokenizer; null (default): four bytes of text are a token. */
  readonly tokenizer?: string | null;
  /** How long an answer is when the request sets no limit. */
  readonly answerLength?: AnswerLength;
  /** False (default): an answer is exactly `max_tokens` long where that is given. True: it may stop before. */
  readonly stopsBeforeLimit?: boolean;
  /** Requests that may wait for a batch slot before the engine answers 503; null: no limit, as vLLM by default. */
  readonly maxQueued?: number | null;
  /** After so long without a request the engine closes a connection (uvicorn: 5 s). */
  readonly keepAliveMs?: number;
  readonly version?: string;
  /** Publishes KV events; null (default): none, as vLLM by default. */
  readonly kvEvents?: KvEventOptions | null;
  /** Whether `usage` tells cached tokens (vLLM's `--enable-prompt-tokens-details`). */
  readonly reportsCachedTokens?: boolean;
  /** As `cache_config_info` names it (vLLM's `--prefix-caching-hash-algo`). */
  readonly hashAlgorithm?: string;
  /** Where block hashes start (`PYTHONHASHSEED`): engines with different seeds have different hashes for equal blocks. */
  readonly hashSeed?: number;
  /** How many of the latest requests to keep whole, for tests of what reaches an engine. */
  readonly keepReceived?: number;
}

export interface ResolvedOptions extends Required<EmulatedEngineOptions> {
  readonly kvEvents: ResolvedKvEventOptions | null;
  /** What copying a block from the host takes. */
  readonly restoreMsPerBlock: number;
  /** Key of the table entry that gives times and memory; null: the pair is not in it, llama-3.1-8b on one H100 stands in. */
  readonly prior: string | null;
}

/** What holds where nothing is said; the rest follows from model and GPU. */
export const defaultOptions = Object.freeze({
  model: "qwen3-32b",
  gpu: "h100",
  host: "127.0.0.1",
  port: 0,
  timeScale: 1,
  maxRunning: 256,
  maxBatchedTokens: 8192,
  blockTokens: 16,
  hostKvTokens: 0,
  hostLinkGBps: 25,
  prefixCaching: true,
  policy: "fcfs",
  adapters: [],
  maxResidentAdapters: 4,
  adapterLoadMs: 250,
  dataParallelRanks: 1,
  tokenizer: null,
  answerLength: { medianTokens: 180, sigma: 0.7 },
  stopsBeforeLimit: false,
  maxQueued: null,
  keepAliveMs: 5000,
  version: "0.32.0",
  kvEvents: null,
  reportsCachedTokens: true,
  hashAlgorithm: "sha256",
  hashSeed: 0,
  keepReceived: 0,
}) satisfies EmulatedEngineOptions;

export function resolveOptions(options: EmulatedEngineOptions): ResolvedOptions {
  const chosen = { ...defaultOptions, ...options };
  const hardware = hardwareFor(chosen.model, chosen.gpu);
  const kvBlocks = Math.floor((chosen.kvTokens ?? hardware.kvTokens) / chosen.blockTokens);
  const kvTokens = kvBlocks * chosen.blockTokens;
  return Object.freeze({
    ...chosen,
    kvEvents: chosen.kvEvents === null ? null : { ...DEFAULT_KV_EVENTS, ...chosen.kvEvents },
    kvTokens,
    maxModelTokens: Math.min(chosen.maxModelTokens ?? hardware.contextTokens, kvTokens),
    times: chosen.times ?? hardware.times,
    restoreMsPerBlock: (chosen.blockTokens * hardware.kvBytesPerToken) / (chosen.hostLinkGBps * 1e6),
    prior: hardware.prior,
  });
}
