/** Whose fault an error is. It decides blame (breakers, metrics) and the wording, never the client. */
export type Fault = "client" | "engine" | "router";

/** Every code that a client can see. Stable: dashboards and clients match on them. Documented in docs/errors.md. */
export type ErrorCode =
  | "invalid_request"
  | "invalid_json"
  | "missing_model"
  | "model_not_found"
  | "body_too_large"
  | "headers_too_large"
  | "unsupported_media_type"
  | "unauthorized"
  | "forbidden"
  | "rate_limited"
  | "not_found"
  | "method_not_allowed"
  | "queue_full"
  | "displaced"
  | "too_late"
  | "queue_timeout"
  | "no_replica_available"
  | "engine_unreachable"
  | "engine_busy"
  | "engine_failed"
  | "kv_expired"
  | "engine_stalled"
  | "connect_timeout"
  | "first_token_timeout"
  | "idle_timeout"
  | "total_timeout"
  | "client_closed"
  | "shutting_down"
  | "internal";

export interface RouterErrorOptions {
  readonly fault: Fault;
  readonly httpStatus: number;
  /** Whether the same request may succeed later or elsewhere. */
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
  /** The request field or configuration key at fault. */
  readonly param?: string;
  readonly cause?: unknown;
}

/** The one error type that crosses rooms. Anything else that is caught becomes one through `toRouterError`. */
export class RouterError extends Error {
  override readonly name = "RouterError";
  readonly code: ErrorCode;
  readonly fault: Fault;
  readonly httpStatus: number;
  readonly retryable: boolean;
  readonly retryAfterMs: number | null;
  readonly param: string | null;

  constructor(code: ErrorCode, message: string, options: RouterErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.fault = options.fault;
    this.httpStatus = options.httpStatus;
    this.retryable = options.retryable;
    this.retryAfterMs = options.retryAfterMs ?? null;
    this.param = options.param ?? null;
  }
}

/** Turns anything caught into a RouterError; an unknown cause is the router's own fault and says nothing of its insides. */
export function toRouterError(caught: unknown): RouterError {
  if (caught instanceof RouterError) return caught;
  return new RouterError("internal", "The router failed to handle this request.", {
    fault: "router",
    httpStatus: 500,
    retryable: true,
    cause: caught,
  });
}
