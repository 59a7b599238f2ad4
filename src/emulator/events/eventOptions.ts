import type { EventFormName } from "./eventForm.ts";

/** How an engine publishes its KV events: vLLM's `--kv-events-config`. Everything has a default. */
export interface KvEventOptions {
  /** Port of the first rank's publisher; the other ranks have the next ones. 0: any that are free in a row. */
  readonly port?: number;
  /** The same for repeating missed batches; null: the engine repeats nothing (vLLM's default). */
  readonly replayPort?: number | null;
  readonly topic?: string;
  /** Batches that can be repeated. */
  readonly bufferSteps?: number;
  /** Messages that may wait for a slow subscriber; further ones are lost to it. */
  readonly highWaterMark?: number;
  readonly form?: EventFormName;
}

export type ResolvedKvEventOptions = Required<KvEventOptions>;

export const DEFAULT_KV_EVENTS: ResolvedKvEventOptions = Object.freeze({
  port: 0,
  replayPort: 0,
  topic: "",
  bufferSteps: 10_000,
  highWaterMark: 100_000,
  form: "vllm",
});
