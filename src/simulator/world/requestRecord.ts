/** `refused`: by the router or, for its size, by an engine. `failed`: its engine died, and it could not go elsewhere. */
export type Ending = "answered" | "refused" | "failed";

/** What became of one request. Times are virtual; NaN: it did not come to that. */
export interface RequestRecord {
  readonly number: number;
  readonly className: string;
  readonly tenant: string;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly arrivedMs: number;
  /** Last time it was placed. */
  boundMs: number;
  /** When its engine got it. */
  reachedMs: number;
  /** When it first was in a batch. */
  scheduledMs: number;
  firstTokenMs: number;
  endedMs: number;
  /** Prompt tokens that the router counted on, and that the engine found cached. */
  predictedCachedTokens: number;
  cachedTokens: number;
  /** Index of its last engine; -1: it never got one. */
  engine: number;
  attempts: number;
  preemptions: number;
  ending: Ending | null;
  /** Why it was refused or failed. */
  code: string | null;
}
