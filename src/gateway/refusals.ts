import { RouterError } from "#src/errors/routerError.ts";
import { unsupportedMediaType } from "#src/errors/shared.ts";

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

/** An engine that unpacks such a body would find in it what the router has not seen: a model, or members for engines alone. */
export function refuseEncoded(encoding: string | null): void {
  if (encoding === null || encoding.trim().toLowerCase() === "identity") return;
  throw unsupportedMediaType(`Content-Encoding ${encoding} is not understood here: send the body as it is.`);
}
