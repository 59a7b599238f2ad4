import { RouterError } from "#src/errors/routerError.ts";

export function keyRateLimited(what: "requests" | "tokens", retryAfterMs: number): RouterError {
  return new RouterError("rate_limited", `This key has used up its ${what} per minute.`, {
    fault: "client",
    httpStatus: 429,
    retryable: true,
    retryAfterMs,
  });
}

/** The bodies in hand take all the memory they may. */
export function overloaded(): RouterError {
  return new RouterError("queue_full", "The router holds as many request bodies as it may.", {
    fault: "router",
    httpStatus: 503,
    retryable: true,
    retryAfterMs: 1_000,
  });
}
