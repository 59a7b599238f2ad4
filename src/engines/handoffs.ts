import type { EngineEndpoint, EngineKind, HandoffName } from "../discovery/replicaSpec.ts";
import type { Handoff, PrefillEnd } from "./handoff/handoff.ts";
import { sglangHandoff } from "./sglang/sglangBootstrap.ts";
import { trtllmHandoff } from "./trtllm/trtllmHandoff.ts";
import { mooncakeHandoff } from "./vllm/handoff/mooncake.ts";
import { nixlHandoff } from "./vllm/handoff/nixl.ts";
import { nixlPushHandoff } from "./vllm/handoff/nixlPush.ts";
import { sharedStorageHandoff } from "./vllm/handoff/sharedStorage.ts";

/** How each kind of engine can hand over, the usual way first. */
const HANDOFFS: Readonly<Record<EngineKind, readonly Handoff[]>> = {
  vllm: [nixlHandoff, nixlPushHandoff, mooncakeHandoff, sharedStorageHandoff],
  sglang: [sglangHandoff],
  trtllm: [trtllmHandoff],
  llamacpp: [],
};

/** Null: engines of this kind do not hand over, or not so. */
export function handoffOf(kind: EngineKind, name: HandoffName | null): Handoff | null {
  const known = HANDOFFS[kind];
  return (name === null ? known[0] : known.find((one) => one.name === name)) ?? null;
}

/** What the decode side has to be told of an engine that prefills. */
export function prefillEnd({ url, handoff }: Pick<EngineEndpoint, "url" | "handoff">): PrefillEnd {
  const { hostname } = new URL(url);
  return {
    host: hostname.startsWith("[") ? hostname.slice(1, -1) : hostname,
    bootstrapHost: handoff?.bootstrapHost ?? null,
    bootstrapPort: handoff?.bootstrapPort ?? null,
    engineId: handoff?.engineId ?? null,
    tensorParallelSize: handoff?.tensorParallelSize ?? 1,
    pipelineParallelSize: handoff?.pipelineParallelSize ?? 1,
  };
}
