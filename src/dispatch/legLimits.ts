/** Limits of one leg, each with an error code of its own; null: none. There are no others. */
export interface LegLimits {
  /** Until a connection to the engine stands, waiting for a free one included: `connect_timeout`. */
  readonly connectMs: number | null;
  /** From the request's last byte to the first token, or to the first byte of an answer in one piece: `first_token_timeout`. */
  readonly firstTokenMs: number | null;
  /** Between two pieces of an answer that has begun: `idle_timeout`. */
  readonly idleMs: number | null;
  /** From the request's arrival at the router to its last byte: `total_timeout`. */
  readonly totalMs: number | null;
}
