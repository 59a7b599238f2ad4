import { hardwareFor } from "./kvCapacity.ts";
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
  readonly maxModelTokens?: number;
  readonly prefixCaching?: boolean;
  readonly policy?: "fcfs" | "priority";
  readonly adapters?: readonly string[];
  readonly maxResidentAdapters?: number;
  readonly adapterLoadMs?: number;
  readonly dataParallelRanks?: number;
  /** Step times instead of the table's. */
  readonly times?: StepTimes;
  /** How long an answer is when the request sets no limit. */
  readonly answerLength?: AnswerLength;
  /** False (default): an answer is exactly `max_tokens` long where that is given. True: it may stop before. */
  readonly stopsBeforeLimit?: boolean;
  /** Requests that may wait before the engine answers 503; null: no limit, as vLLM by default. */
  readonly maxQueued?: number | null;
  /** After so long without a request the engine closes a connection (uvicorn: 5 s). */
  readonly keepAliveMs?: number;
  readonly version?: string;
  /** How many of the latest requests to keep whole, for tests of what reaches an engine. */
  readonly keepReceived?: number;
}

export type ResolvedOptions = Readonly<Required<EmulatedEngineOptions>>;

export function resolveOptions(options: EmulatedEngineOptions): ResolvedOptions {
  const model = options.model ?? "qwen3-32b";
  const gpu = options.gpu ?? "h100";
  const hardware = hardwareFor(model, gpu);
  const kvTokens = options.kvTokens ?? hardware.kvTokens;
  return Object.freeze({
    model,
    gpu,
    host: options.host ?? "127.0.0.1",
    port: options.port ?? 0,
    timeScale: options.timeScale ?? 1,
    maxRunning: options.maxRunning ?? 256,
    maxBatchedTokens: options.maxBatchedTokens ?? 8192,
    kvTokens,
    blockTokens: options.blockTokens ?? 16,
    maxModelTokens: Math.min(options.maxModelTokens ?? hardware.contextTokens, kvTokens),
    prefixCaching: options.prefixCaching ?? true,
    policy: options.policy ?? "fcfs",
    adapters: options.adapters ?? [],
    maxResidentAdapters: options.maxResidentAdapters ?? 4,
    adapterLoadMs: options.adapterLoadMs ?? 250,
    dataParallelRanks: options.dataParallelRanks ?? 1,
    times: options.times ?? hardware.times,
    answerLength: options.answerLength ?? { medianTokens: 180, sigma: 0.7 },
    stopsBeforeLimit: options.stopsBeforeLimit ?? false,
    maxQueued: options.maxQueued ?? null,
    keepAliveMs: options.keepAliveMs ?? 5000,
    version: options.version ?? "0.32.0",
    keepReceived: options.keepReceived ?? 0,
  });
}
