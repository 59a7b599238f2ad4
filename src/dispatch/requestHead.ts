import { endToEnd } from "./headers.ts";
import type { HeaderList } from "./headers.ts";
import type { Origin } from "./origin.ts";

/**
 * Client headers that no engine gets: the client's credentials are for the router; length, host and expectation are
 * the connection's own; the rest is the router's to say.
 */
const DROPPED: ReadonlySet<string> = new Set([
  "authorization",
  "x-api-key",
  "api-key",
  "cookie",
  "host",
  "content-length",
  "expect",
  "x-request-id",
  "x-data-parallel-rank",
  "x-kvasir-explain",
  "x-kvasir-class",
  "x-kvasir-tenant",
  "x-kvasir-timeout-ms",
]);

const BODYLESS: ReadonlySet<string> = new Set(["GET", "HEAD", "DELETE", "OPTIONS"]);

export interface RequestHead {
  readonly method: string;
  /** Origin form, as the client sent it. */
  readonly target: string;
  readonly clientHeaders: HeaderList;
  readonly origin: Origin;
  readonly requestId: string;
  readonly engineKey: string | null;
  /** Pins the request to a data-parallel rank. */
  readonly rankHeader: readonly [name: string, value: string] | null;
  readonly bodyBytes: number;
}

/** The bytes (Latin-1) before the body of a leg. */
export function buildRequestHead(head: RequestHead): string {
  let text = `${head.method} ${head.origin.pathPrefix}${head.target} HTTP/1.1\r\nHost: ${head.origin.host}\r\n`;
  const kept = endToEnd(head.clientHeaders, DROPPED);
  for (let i = 0; i + 1 < kept.length; i += 2) text += `${kept[i]}: ${kept[i + 1]}\r\n`;
  text += `X-Request-Id: ${head.requestId}\r\n`;
  if (head.engineKey !== null) text += `Authorization: Bearer ${head.engineKey}\r\n`;
  if (head.rankHeader !== null) text += `${head.rankHeader[0]}: ${head.rankHeader[1]}\r\n`;
  if (head.bodyBytes > 0 || !BODYLESS.has(head.method)) text += `Content-Length: ${head.bodyBytes}\r\n`;
  return `${text}\r\n`;
}
