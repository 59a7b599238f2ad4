import { RouterError } from "./routerError.ts";

// Errors that more than one room gives.

export function modelNotFound(name: string): RouterError {
  return badModel("model_not_found", 404, `The model "${name}" does not exist here, or this key may not use it.`);
}

export function missingModel(message: string): RouterError {
  return badModel("missing_model", 400, message);
}

export function bodyTooLarge(maxBytes: number): RouterError {
  return new RouterError("body_too_large", `The body is larger than ${maxBytes} bytes.`, {
    fault: "client",
    httpStatus: 413,
    retryable: false,
  });
}

export function unsupportedMediaType(message: string): RouterError {
  return new RouterError("unsupported_media_type", message, { fault: "client", httpStatus: 415, retryable: false });
}

export function methodNotAllowed(message: string): RouterError {
  return new RouterError("method_not_allowed", message, { fault: "client", httpStatus: 405, retryable: false });
}

export function clientClosed(): RouterError {
  return new RouterError("client_closed", "The client closed the connection.", {
    fault: "client",
    httpStatus: 499,
    retryable: false,
  });
}

export function shuttingDown(): RouterError {
  return new RouterError("shutting_down", "The router is shutting down.", {
    fault: "router",
    httpStatus: 503,
    retryable: true,
    retryAfterMs: 1_000,
  });
}

function badModel(code: "model_not_found" | "missing_model", httpStatus: number, message: string): RouterError {
  return new RouterError(code, message, { fault: "client", httpStatus, retryable: false, param: "model" });
}
