import { headerCount, headerValue } from "#src/dispatch/headers.ts";
import type { HttpParser } from "#src/dispatch/httpParser.ts";
import { RouterError } from "#src/errors/routerError.ts";
import { bodyTooLarge, methodNotAllowed } from "#src/errors/shared.ts";

/** The client's fault, by a request that should not have been sent so. */
export function badRequest(message: string, httpStatus = 400): RouterError {
  return new RouterError("invalid_request", message, { fault: "client", httpStatus, retryable: false });
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

export function headersTooLarge(): RouterError {
  return new RouterError("headers_too_large", "The headers are too large or too many.", {
    fault: "client",
    httpStatus: 431,
    retryable: false,
  });
}

export function requestTimeout(): RouterError {
  return new RouterError("invalid_request", "The request was not complete in time.", {
    fault: "client",
    httpStatus: 408,
    retryable: true,
  });
}

const PRINTABLE = /^[\u0021-\u007e]+$/u;
const HOST = /^(?:[\w.~%!$&'()*+,;=-]*|\[[\da-fA-F:.]+\])(?::\d{0,5})?$/u;

/**
 * What llhttp does not judge: methods and targets that make no sense for an API, Host, and encodings that only some
 * servers understand, on which two servers in a row may disagree about where a request ends. Returns what is wrong.
 */
export function checkHead(parser: HttpParser, maxBodyBytes: number): RouterError | null {
  const { headers, minorVersion, method, target } = parser;
  if (minorVersion === null || minorVersion > 1) return badRequest("Only HTTP/1.0 and HTTP/1.1 are spoken here.", 505);
  if (method === "CONNECT" || method === "TRACE") {
    return methodNotAllowed(`${method} is not allowed.`);
  }
  if (!PRINTABLE.test(target)) return badRequest("The request target has characters that must be escaped.");
  if (originForm(target) === null) return badRequest("The request target is not a path.");
  const hosts = headerCount(headers, "host");
  if (hosts > 1 || (hosts === 0 && minorVersion === 1)) return badRequest("A request has exactly one Host header.");
  if (hosts === 1 && !HOST.test(headerValue(headers, "host") ?? "")) return badRequest("The Host header is malformed.");
  const encodings = headerCount(headers, "transfer-encoding");
  if (encodings > 0) {
    if (minorVersion === 0) return badRequest("HTTP/1.0 has no Transfer-Encoding.");
    if (encodings > 1 || headerValue(headers, "transfer-encoding")?.toLowerCase() !== "chunked") {
      return badRequest("The only Transfer-Encoding understood is chunked.", 501);
    }
  }
  const expect = headerValue(headers, "expect");
  if (expect !== null && expect.toLowerCase() !== "100-continue") return badRequest("Unknown expectation.", 417);
  const length = contentLength(parser);
  return length !== null && length > maxBodyBytes ? bodyTooLarge(maxBodyBytes) : null;
}

/** Bytes that the head announces; null: chunked. llhttp has already refused what is no number, or two of them. */
export function contentLength(parser: HttpParser): number | null {
  const value = headerValue(parser.headers, "content-length");
  if (value !== null) return Number(value);
  return headerValue(parser.headers, "transfer-encoding") === null ? 0 : null;
}

/** Path and query of a target. The authority of an absolute form is dropped: no client chooses an address. */
export function originForm(target: string): string | null {
  if (target.startsWith("/") || target === "*") return target;
  const absolute = /^https?:\/\/[^/?#]+(?<rest>[/?][^#]*)?$/iu.exec(target);
  if (absolute === null) return null;
  const rest = absolute.groups?.["rest"] ?? "/";
  return rest.startsWith("/") ? rest : `/${rest}`;
}
