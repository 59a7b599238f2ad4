import type { EngineKind } from "../discovery/replicaSpec.ts";
import type { EngineAdapter } from "./engineAdapter.ts";
import { llamacppAdapter } from "./llamacpp/llamacppAdapter.ts";
import { sglangAdapter } from "./sglang/sglangAdapter.ts";
import { trtllmAdapter } from "./trtllm/trtllmAdapter.ts";
import { vllmAdapter } from "./vllm/vllmAdapter.ts";

/** Every dialect, the most usual first. TensorRT-LLM comes last: asking it may drain its statistics. */
export const ADAPTERS: readonly EngineAdapter[] = [vllmAdapter, sglangAdapter, llamacppAdapter, trtllmAdapter];

export function adapterOf(kind: EngineKind): EngineAdapter {
  const adapter = ADAPTERS.find((candidate) => candidate.kind === kind);
  if (adapter === undefined) throw new Error(`no adapter for engine kind ${kind}`);
  return adapter;
}
