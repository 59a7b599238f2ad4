/** What the metrics show of one replica, taken at the moment of a scrape. `null`: not known; the series is left out. */
export interface ReplicaSnapshot {
  readonly replica: string;
  /** What its engine is, e.g. `vllm`; null before it was found out. */
  readonly engine: string | null;
  readonly runningRequests: number | null;
  readonly waitingRequests: number | null;
  /** Placed there by this router and not ended. */
  readonly reservedRequests: number;
  readonly maxRunningRequests: number;
  /** Share of KV memory, 0..1. */
  readonly kvUsage: number | null;
  readonly pendingPrefillTokens: number;
  /** A request may go there now. Not the same as alive. */
  readonly routable: boolean;
  /** State of its life, e.g. `ready`, `quarantined`. */
  readonly state: string;
  /** Mean absolute error of the latency model, as a share; null before anything was predicted. */
  readonly prefillMape: number | null;
  readonly stepMape: number | null;
  readonly metricsAgeMs: number | null;
  /** Blocks that the prefix index thinks are cached there. */
  readonly indexedBlocks: number | null;
  /** What its KV events are worth, e.g. `live`, `rebuilding`, `unsure`; `absent` where it has none. */
  readonly viewState: string;
  /** Share of its last answers whose cached tokens were as predicted; null: none yet. */
  readonly cachePredictionAgreement: number | null;
}

/** One stream of KV events. Counts are since the stream began. */
export interface KvStreamSnapshot {
  readonly replica: string;
  readonly batches: number;
  readonly events: number;
  readonly unreadableEvents: number;
  readonly droppedMessages: number;
  readonly replays: number;
  readonly losses: number;
  readonly restarts: number;
}

/** A visible degradation. */
export interface ConditionSnapshot {
  readonly key: string;
  /** Null: of the whole router. */
  readonly replicaId: string | null;
  readonly sinceMs: number;
  readonly message: string;
  readonly mend: string;
}

/** How many wait in the router, by model and class. */
export interface WaitingSnapshot {
  readonly model: string;
  readonly className: string;
  readonly requests: number;
  /** How long the one that came first has waited. */
  readonly longestMs: number;
  /** Predicted wait of one more; null: too little was seen to tell. */
  readonly expectedMs: number | null;
}

/** Looked at when somebody scrapes, so that what is gone has no series. */
export interface TelemetrySources {
  replicas(): Iterable<ReplicaSnapshot>;
  kvStreams(): Iterable<KvStreamSnapshot>;
  conditions(): Iterable<ConditionSnapshot>;
  waiting(): Iterable<WaitingSnapshot>;
  queueBytes(): number;
  requestsInFlight(): number;
  logLinesDropped(): number;
}

export const NO_SOURCES: TelemetrySources = {
  replicas: () => [],
  kvStreams: () => [],
  conditions: () => [],
  waiting: () => [],
  queueBytes: () => 0,
  requestsInFlight: () => 0,
  logLinesDropped: () => 0,
};
