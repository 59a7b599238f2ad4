/** Engines that Kvasir speaks natively. */
export type EngineKind = "vllm" | "sglang" | "trtllm" | "llamacpp";

/** What a replica is used for. */
export type Role = "mixed" | "prefill" | "decode" | "draft";

/** Where a replica stands. All optional; links between replicas are priced from what two of them share. */
export interface ReplicaLabels {
  readonly host?: string;
  readonly nvlinkDomain?: string;
  readonly rack?: string;
  readonly zone?: string;
  readonly gpu?: string;
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
}
