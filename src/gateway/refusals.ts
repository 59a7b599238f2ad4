import { RouterError } from "#src/errors/routerError.ts";

export function keyRateLimited(what: "requests" | "tokens", retryAfterMs: number): RouterError {
  return new RouterError("rate_limited", `This key has used up its ${what} per minute.`, {
    fault: "client",
    httpStatus: 429,
    retryable: true,
    retryAfterMs,
  });
}

export function modelsNotKnown(): RouterError {
  return new RouterError("no_replica_available", "Not every engine has told yet which models it serves.", {
    fault: "router",
    httpStatus: 503,
    retryable: true,
    retryAfterMs: 2_000,
  });
}
