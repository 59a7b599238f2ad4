import { RouterError } from "#src/errors/routerError.ts";
import { isEngineControlPath } from "#src/request/apiKind.ts";

/** Where a request wants to go. */
export interface RequestTarget {
  /** Path as the client wrote it, without query. */
  readonly path: string;
  /** The same with percent-escapes resolved: what an engine's router will look at. */
  readonly decodedPath: string;
  /** Path and query, to be forwarded as they came. */
  readonly target: string;
}

/** Engine routes that tell more than a client should know, and the emulator's own. */
const OPERATOR_PATH = /^\/(metrics|prometheus\/metrics|perf_metrics|load|get_load|v1\/loads|emulator\/.*)\/?$/;

/**
 * Checks a request target. Only the origin form is taken, so nothing in it can name an address; dot segments, empty
 * segments and escapes that hide either are refused rather than resolved, because engines resolve them differently.
 */
export function readTarget(target: string): RequestTarget {
  if (!target.startsWith("/") || target.length > 8192) throw badTarget("The request target must be a path.");
  if (/[^\x21-\x7e]|[#\\]/.test(target)) throw badTarget("The request target has a character that is not allowed.");
  const query = target.indexOf("?");
  const path = query < 0 ? target : target.slice(0, query);
  let decodedPath: string;
  try {
    decodedPath = path.includes("%") ? decodeURIComponent(path) : path;
  } catch (cause) {
    throw badTarget("The request path has a broken percent-escape.", cause);
  }
  if (/\/\/|\/\.{1,2}(\/|$)|[\\%;]|[^\u0021-\u007e\u00a0-\uffff]/.test(decodedPath)) {
    throw badTarget("The request path must be plain: no empty or dot segments, no hidden separators.");
  }
  return { path, decodedPath, target };
}

/** Throws for the routes of an engine that are the operator's. */
export function refuseControlPaths({ path, decodedPath }: RequestTarget): void {
  if (!isOperators(path) && !isOperators(decodedPath)) return;
  throw new RouterError("forbidden", `${path} is a control route of the engines; the router does not forward it.`, {
    fault: "client",
    httpStatus: 403,
    retryable: false,
  });
}

function isOperators(path: string): boolean {
  const lower = path.toLowerCase();
  return isEngineControlPath(lower) || OPERATOR_PATH.test(lower);
}

function badTarget(message: string, cause?: unknown): RouterError {
  return new RouterError("invalid_request", message, { fault: "client", httpStatus: 400, retryable: false, cause });
}
