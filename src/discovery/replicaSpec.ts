/** Engines that Kvasir speaks natively. */
export type EngineKind = "vllm" | "sglang" | "trtllm" | "llamacpp";

/** What a replica is used for. */
export type Role = "mixed" | "prefill" | "decode" | "draft";

/** Ways by which KV gets from a prefill to a decode engine. */
export const HANDOFF_NAMES = [
  "nixl",
  "nixl-push",
  "mooncake",
  "shared-storage",
  "bootstrap",
  "disaggregated-params",
] as const;

export type HandoffName = (typeof HANDOFF_NAMES)[number];

/** How an engine hands KV over. All optional: what is absent is as the engine has it by default. */
export interface HandoffSettings {
  /** Absent: the usual one of its kind. */
  readonly protocol?: HandoffName;
  /** How long an engine keeps the KV of a prefill that nobody fetches. */
  readonly leaseMs?: number;
  /** Where it is met for a hand-off, if not at the host of its URL. */
  readonly bootstrapHost?: string;
  readonly bootstrapPort?: number;
  /** `engine_id` of its KV connector, for protocols that name it beforehand. */
  readonly engineId?: string;
  readonly tensorParallelSize?: number;
  readonly pipelineParallelSize?: number;
}

/** Where a replica stands. All optional; links between replicas are priced from what two of them share. */
export interface ReplicaLabels {
  readonly host?: string;
  readonly nvlinkDomain?: string;
  readonly rack?: string;
  readonly zone?: string;
  readonly gpu?: string;
}

/** Where an engine publishes its KV events. */
export interface KvEventEndpoints {
  /**
   * ZeroMQ address of the first data-parallel rank, e.g. `tcp://*:5557`; each further rank is on the next port. The
   * host `*` stands for the engine's own. `pull`: TensorRT-LLM is asked for its events over HTTP, which takes them away
   * from everybody else who asks.
   */
  readonly endpoint: string;
  /** Where missed events are asked for; null: nowhere. */
  readonly replayEndpoint: string | null;
  /** Topics that begin so are subscribed to; empty: all. */
  readonly topic: string;
  /** The engine connects to `endpoint`, an address of the router, instead of the other way round. */
  readonly bind?: boolean;
}

/** One engine endpoint as a discovery source names it, before anything was asked of it. */
export interface EngineEndpoint {
  /** Origin, e.g. `http://10.0.0.1:8000` or `https://[fd00::1]:8000`. A path prefix is allowed. */
  readonly url: string;
  /** Stable name; defaults to host:port. */
  readonly name: string;
  /** Null: find out by probing. */
  readonly engine: EngineKind | null;
  readonly role: Role;
  readonly labels: ReplicaLabels;
  readonly handoff?: HandoffSettings;
  /** Bearer key that this engine wants; never a client's. */
  readonly apiKey: string | null;
  /** Null: ask the engine. */
  readonly dataParallelRanks: number | null;
  /** Batch slots, where the engine does not say (vLLM does not). Absent: the engine's word, else an assumption. */
  readonly maxRunningRequests?: number;
  /** KV memory in tokens, where the engine does not say. */
  readonly kvCapacityTokens?: number;
  /** Key of the step-time priors, e.g. `qwen3-32b/h200_tp2`; null: the generic prior. */
  readonly prior: string | null;
  /** Absent: ask the engine. Null: it publishes none. */
  readonly kvEvents?: KvEventEndpoints | null;
}
