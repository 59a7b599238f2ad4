/**
 * One scrape of an engine (of one data-parallel rank), in Kvasir's words. `null` means that this engine does not
 * publish the fact; it is never a zero. Counters are cumulative since the engine's start.
 */
export interface EngineMetrics {
  readonly runningRequests: number | null;
  readonly waitingRequests: number | null;
  /** Share of KV memory in use, 0..1. */
  readonly kvUsage: number | null;
  readonly kvCapacityTokens: number | null;
  readonly kvBlockTokens: number | null;
  readonly maxRunningRequests: number | null;
  readonly prefixQueriedTokensTotal: number | null;
  readonly prefixHitTokensTotal: number | null;
  readonly preemptionsTotal: number | null;
  readonly promptTokensTotal: number | null;
  readonly generatedTokensTotal: number | null;
  /** Adapters in GPU memory, running or waiting to be; null where not published. */
  readonly residentAdapters: readonly string[] | null;
  readonly maxResidentAdapters: number | null;
  readonly draftTokensTotal: number | null;
  readonly acceptedDraftTokensTotal: number | null;
  readonly prefixCachingEnabled: boolean | null;
  readonly asleep: boolean | null;
}

/** What `/v1/models` says of one name. `parent` is set for an adapter. */
export interface ServedModel {
  readonly id: string;
  readonly parent: string | null;
  readonly maxModelTokens: number | null;
}

/** One of the facts above, by its name in Kvasir. */
export type Fact = keyof EngineMetrics;

/** A scrape that could be read, and what was expected in it but not there. */
export interface ScrapeResult {
  /**
   * By data-parallel rank; a single-rank engine has key 0. Empty: the engine had nothing new to tell (TensorRT-LLM's
   * JSON route drains on read), so what was known before stays and ages.
   */
  readonly byRank: ReadonlyMap<number, EngineMetrics>;
  /** Names of the facts that this engine kind normally publishes and this answer lacked. Loud, never zero. */
  readonly missing: readonly string[];
  /** When the engine's process started, in seconds since 1970, where it tells. */
  readonly startedAtSeconds?: number | null;
}
