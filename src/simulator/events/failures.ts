import { RouterError } from "#src/errors/routerError.ts";

/** The engine's process does not listen, or has died with the request. */
export function engineUnreachable(engine: string): RouterError {
  return new RouterError("engine_unreachable", `${engine} is down.`, {
    fault: "engine",
    httpStatus: 502,
    retryable: true,
  });
}
