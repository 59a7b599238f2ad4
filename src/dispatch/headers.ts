/** Flat header list: name, value, name, value; names as sent. The form in which headers arrive and leave. */
export type HeaderList = readonly string[];

/** RFC 9110, section 7.6.1, with the older `Keep-Alive` and `Proxy-Connection`: they concern one connection only. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** First value of a header, by lower-case name. */
export function headerValue(headers: HeaderList, name: string): string | null {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const candidate = headers[i];
    if (candidate !== undefined && candidate.length === name.length && candidate.toLowerCase() === name) {
      return headers[i + 1] ?? null;
    }
  }
  return null;
}

/** How many headers have this lower-case name. */
export function headerCount(headers: HeaderList, name: string): number {
  let count = 0;
  for (let i = 0; i < headers.length; i += 2) {
    const candidate = headers[i];
    if (candidate !== undefined && candidate.length === name.length && candidate.toLowerCase() === name) count++;
  }
  return count;
}

/** Headers that `Connection` names concern this connection only, whatever they are. */
function connectionOptions(headers: HeaderList): ReadonlySet<string> | null {
  let options: Set<string> | null = null;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.length !== 10 || headers[i]?.toLowerCase() !== "connection") continue;
    for (const option of (headers[i + 1] ?? "").split(",")) {
      const name = option.trim().toLowerCase();
      if (name !== "" && name !== "close" && name !== "keep-alive") (options ??= new Set()).add(name);
    }
  }
  return options;
}

/** End-to-end headers in their order, less those of `dropped` (lower-case names). */
export function endToEnd(headers: HeaderList, dropped: ReadonlySet<string>): string[] {
  const named = connectionOptions(headers);
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? "";
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || dropped.has(lower) || (named !== null && named.has(lower))) continue;
    kept.push(name, headers[i + 1] ?? "");
  }
  return kept;
}
