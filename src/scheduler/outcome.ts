import type { RouterError } from "#src/errors/routerError.ts";

/** What the engine said it used, where it said so. */
export interface Usage {
  readonly promptTokens: number | null;
  /** Null: not reported (which is not zero). */
  readonly cachedTokens: number | null;
  /** All sequences together. */
  readonly outputTokens: number | null;
}

/** Which part of a pair; a placement on one replica has only its `decode`. */
export type LegName = "prefill" | "decode";

/**
 * How a placement ended. Only `failed` counts against a replica; `busy` is back-pressure; `answered` covers every
 * response that was carried whole, 4xx included. `leg`: of a pair, the side that this is about, `decode` if absent;
 * `link`: both sides are well, but what one computed did not reach the other.
 */
export type AttemptOutcome = { readonly leg?: LegName | "link" } & (
  | { readonly kind: "answered"; readonly status: number; readonly usage: Usage }
  | { readonly kind: "busy"; readonly status: number; readonly retryAfterMs: number | null }
  | { readonly kind: "failed"; readonly error: RouterError; readonly started: boolean }
  | { readonly kind: "client_gone" }
  | { readonly kind: "shutdown" }
);
