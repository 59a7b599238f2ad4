import { RouterError } from "#src/errors/routerError.ts";
import type { ErrorCode } from "#src/errors/routerError.ts";

/** The errors of carrying a request. All are the engine's fault but the last two. */
export function connectTimeout(limitMs: number): RouterError {
  return engine("connect_timeout", 504, `No connection to the engine within ${limitMs} ms.`);
}

export function firstTokenTimeout(limitMs: number): RouterError {
  return engine("first_token_timeout", 504, `The engine sent no token within ${limitMs} ms.`);
}

export function idleTimeout(limitMs: number): RouterError {
  return engine("idle_timeout", 504, `The engine's answer stalled for ${limitMs} ms.`);
}

export function totalTimeout(): RouterError {
  return engine("total_timeout", 504, "The answer was not complete within the time limit of the request.");
}

export function unreachable(cause: Error): RouterError {
  return engine("engine_unreachable", 502, "The engine could not be reached.", cause);
}

export function closedEarly(cause: Error | null): RouterError {
  return engine("engine_failed", 502, "The engine closed the connection before its answer was complete.", cause);
}

export function malformedAnswer(reason: string): RouterError {
  return engine("engine_failed", 502, `The engine's answer is not valid HTTP: ${reason}.`);
}

export function answeredStatus(status: number): RouterError {
  return engine("engine_failed", 502, `The engine answered with status ${status}.`);
}

export function engineBusy(status: number, retryAfterMs: number | null): RouterError {
  return new RouterError("engine_busy", "The engine takes no more requests at the moment.", {
    fault: "engine",
    httpStatus: status,
    retryable: true,
    retryAfterMs: retryAfterMs ?? 1000,
  });
}

export function tooManyWaiting(): RouterError {
  return new RouterError("engine_busy", "All connections to the engine are taken and too many requests wait for one.", {
    fault: "router",
    httpStatus: 503,
    retryable: true,
    retryAfterMs: 1000,
  });
}

export function kvExpired(): RouterError {
  return engine("kv_expired", 502, "The prompt's KV would have expired before a decode engine could fetch it.");
}

export function prefillTooLong(): RouterError {
  return engine("engine_failed", 502, "The prefill engine's answer is longer than any that hands KV over.");
}

export function replicaRemoved(): RouterError {
  return engine("engine_unreachable", 503, "The engine was removed from the fleet before it answered.");
}

export function replicaSilent(): RouterError {
  return engine("engine_unreachable", 502, "The engine stopped answering before it sent anything of its answer.");
}

function engine(code: ErrorCode, httpStatus: number, message: string, cause?: Error | null): RouterError {
  return new RouterError(code, message, { fault: "engine", httpStatus, retryable: true, ...(cause ? { cause } : {}) });
}
