import type { RouterError } from "./routerError.ts";

function anthropicType({ httpStatus, fault }: RouterError): string {
  switch (httpStatus) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return fault === "client" ? "invalid_request_error" : "api_error";
  }
}

/** The body of an error in the shape of Anthropic's messages API; `code` says which of Kvasir's it is. */
export function anthropicErrorObject(error: RouterError, requestId: string): Record<string, unknown> {
  return {
    type: "error",
    error: { type: anthropicType(error), message: error.message, code: error.code },
    request_id: requestId,
  };
}
