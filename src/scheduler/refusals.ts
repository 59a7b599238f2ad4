import { RouterError } from "#src/errors/routerError.ts";

/** Clients that come back sooner find the same queue; those told to wait longer than this give up or ignore it. */
const RETRY_AFTER_MIN_MS = 1_000;
const RETRY_AFTER_MAX_MS = 60_000;

function clamped(retryAfterMs: number): number {
  if (Number.isNaN(retryAfterMs)) return RETRY_AFTER_MIN_MS;
  return Math.min(RETRY_AFTER_MAX_MS, Math.max(RETRY_AFTER_MIN_MS, retryAfterMs));
}

export function queueFull(bound: "requests" | "bytes", retryAfterMs: number): RouterError {
  const what =
    bound === "requests" ? "as many requests wait as may" : "the waiting requests take all the memory they may";
  return new RouterError("queue_full", `All batch slots are taken and ${what}.`, {
    fault: "router",
    httpStatus: 429,
    retryable: true,
    retryAfterMs: clamped(retryAfterMs),
  });
}

export function queueTimeout(waitedMs: number, retryAfterMs: number): RouterError {
  return new RouterError("queue_timeout", `No batch slot came free within ${Math.round(waitedMs)} ms.`, {
    fault: "router",
    httpStatus: 503,
    retryable: true,
    retryAfterMs: clamped(retryAfterMs),
  });
}

/** It waited, and gave its place to one of a higher class, or of a tenant that has less waiting. */
export function displaced(waitedMs: number, retryAfterMs: number): RouterError {
  return new RouterError(
    "displaced",
    `The queue is full, and after ${Math.round(waitedMs)} ms its place went to a request that goes before it.`,
    { fault: "router", httpStatus: 429, retryable: true, retryAfterMs: clamped(retryAfterMs) },
  );
}

/** No answer could begin in the time that is left. */
export function tooLate(limit: "deadline" | "target", expectedMs: number, retryAfterMs: number): RouterError {
  const which = limit === "deadline" ? "its deadline" : "the time to first token that its class is promised";
  return new RouterError(
    "too_late",
    `Its answer would begin in ${Math.round(expectedMs)} ms at the earliest, which is after ${which}.`,
    { fault: "router", httpStatus: 503, retryable: true, retryAfterMs: clamped(retryAfterMs) },
  );
}

export function noReplica(model: string, reasons: readonly string[], retryAfterMs: number): RouterError {
  const why = reasons.length === 0 ? "there is none" : [...new Set(reasons)].sort().join(", ");
  return new RouterError("no_replica_available", `No replica can take a request for "${model}" now: ${why}.`, {
    fault: "router",
    httpStatus: 503,
    retryable: true,
    retryAfterMs: clamped(retryAfterMs),
  });
}

export function promptTooLong(model: string): RouterError {
  return new RouterError("invalid_request", `The prompt is longer than any replica of "${model}" takes.`, {
    fault: "client",
    httpStatus: 400,
    retryable: false,
    param: "messages",
  });
}
