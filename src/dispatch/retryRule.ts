import type { ErrorCode } from "#src/errors/routerError.ts";
import type { LegEnd } from "./leg.ts";

/**
 * Failures after which the prompt may run elsewhere: the engine refused it, or the connection it was sent over is gone,
 * and with it the work, because engines abort a request whose connection closes.
 *
 * Not `first_token_timeout`: an engine that hangs does not notice that the connection was closed; it may compute the
 * prompt yet. Where the fleet takes it for dead, and another replica is free, that is preferred to waiting: such a leg ends
 * as `engine_unreachable`. Not a status 500: that is the answer of an engine that has run the prompt.
 */
const ELSEWHERE: ReadonlySet<ErrorCode> = new Set([
  "connect_timeout",
  "engine_unreachable",
  "engine_failed",
  "engine_busy",
  "kv_expired",
]);

/** Whether a leg that ended before the client was sent anything may be tried on another replica. */
export function mayRetry(end: LegEnd): boolean {
  return end.kind === "busy" || (end.kind === "failed" && ELSEWHERE.has(end.error.code));
}
