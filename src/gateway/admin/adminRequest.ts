import { RouterError } from "#src/errors/routerError.ts";

export interface AdminRequest {
  readonly method: string;
  /** Path segments, percent-escapes resolved. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
  readonly contentType: string;
  readonly body: Buffer;
}

export interface AdminAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Buffer;
}

export function json(body: unknown, status = 200): AdminAnswer {
  return { status, contentType: "application/json", body: JSON.stringify(body) };
}

export function notFound(what: string): RouterError {
  return new RouterError("not_found", what, { fault: "client", httpStatus: 404, retryable: false });
}

export function badRequest(message: string, param?: string): RouterError {
  return new RouterError("invalid_request", message, {
    fault: "client",
    httpStatus: 400,
    retryable: false,
    ...(param === undefined ? {} : { param }),
  });
}

/** Splits a request target; the authority is nobody's. */
export function readAdminTarget(target: string): Pick<AdminRequest, "segments" | "query"> {
  const [path = "", query = ""] = target.split("?", 2);
  try {
    const segments = path.split("/").slice(1).map(decodeURIComponent);
    return { segments: segments.at(-1) === "" ? segments.slice(0, -1) : segments, query: new URLSearchParams(query) };
  } catch {
    throw badRequest("The path has a broken percent-escape.");
  }
}
