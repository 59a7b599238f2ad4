import { RouterError } from "#src/errors/routerError.ts";

export function keyRateLimited(what: "requests" | "tokens", retryAfterMs: number): RouterError {
  return new RouterError("rate_limited", `This key has used up its ${what} per minute.`, {
    fault: "client",
    httpStatus: 429,
    retryable: true,
    retryAfterMs,
  });
}
