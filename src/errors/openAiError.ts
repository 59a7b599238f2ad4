import { anthropicErrorObject } from "./anthropicError.ts";
import type { RouterError } from "./routerError.ts";

/** An error as HTTP: status, the headers that go with it and a body in OpenAI's shape. */
export interface HttpError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function openAiType(error: RouterError): string {
  if (error.code === "unauthorized") return "authentication_error";
  if (error.code === "forbidden") return "permission_error";
  if (error.httpStatus === 429) return "rate_limit_error";
  if (error.fault === "client") return "invalid_request_error";
  return "server_error";
}

/** The error object of OpenAI's API: `{message, type, param, code}`, plus whose fault and whether to retry. */
export function openAiErrorObject(error: RouterError, requestId: string): Record<string, unknown> {
  return {
    message: error.message,
    type: openAiType(error),
    param: error.param,
    code: error.code,
    fault: error.fault,
    retryable: error.retryable,
    request_id: requestId,
  };
}

/** Whose API the client speaks. */
export type ErrorShape = "openai" | "anthropic";

/** The one place where an error becomes HTTP. */
export function toHttpError(error: RouterError, requestId: string, shape: ErrorShape = "openai"): HttpError {
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "x-should-retry": error.retryable ? "true" : "false",
    "x-request-id": requestId,
  };
  // Under the name that Anthropic's SDK looks for, too.
  if (shape === "anthropic") headers["request-id"] = requestId;
  if (error.retryAfterMs !== null) headers["retry-after"] = String(Math.max(1, Math.ceil(error.retryAfterMs / 1000)));
  if (error.code === "unauthorized") headers["www-authenticate"] = "Bearer";
  const object =
    shape === "anthropic" ? anthropicErrorObject(error, requestId) : { error: openAiErrorObject(error, requestId) };
  return { status: error.httpStatus, headers, body: JSON.stringify(object) };
}
