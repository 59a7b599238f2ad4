/** pino's number for the level. */
const INFO = 30;

/**
 * One request, or one attempt of it that was followed by another, as a log line. A closed list of fields: nothing else
 * is written, so no prompt and no key can get there.
 */
export interface RequestRecord {
  readonly requestId: string;
  readonly decisionId: string | null;
  /** `attempt`: an attempt that was given up for another; `request`: the end of it all. */
  readonly kind: "request" | "attempt";
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  /** As the fleet names it; null where it does not know the name. */
  readonly model: string | null;
  readonly adapter: string | null;
  readonly tenant: string;
  readonly className: string;
  readonly replica: string | null;
  readonly attempt: number;
  readonly status: number;
  /** Null: the engine's answer was passed on. */
  readonly code: string | null;
  readonly fault: "client" | "engine" | "router" | null;
  readonly streamed: boolean;
  readonly bodyBytes: number;
  readonly ttftMs: number | null;
  readonly e2eMs: number;
  readonly queueMs: number;
  /** Reported, else estimated. */
  readonly promptTokens: number | null;
  readonly cachedTokensPredicted: number | null;
  /** Null: not reported (which is not zero). */
  readonly cachedTokensReported: number | null;
  readonly outputTokens: number | null;
}

/**
 * The line, as pino would write it at level `info`, at a quarter of the cost: a closed list of fields needs none of what
 * pino does per field. A value the caller smuggles in besides stays out.
 */
export function requestLine(record: RequestRecord, nowEpochMs: number): string {
  const line: { readonly level: number; readonly time: string } & RequestRecord = {
    level: INFO,
    time: isoTime(nowEpochMs),
    requestId: record.requestId,
    decisionId: record.decisionId,
    kind: record.kind,
    method: record.method,
    path: withoutQuery(record.path),
    model: record.model,
    adapter: record.adapter,
    tenant: record.tenant,
    className: record.className,
    replica: record.replica,
    attempt: record.attempt,
    status: record.status,
    code: record.code,
    fault: record.fault,
    streamed: record.streamed,
    bodyBytes: record.bodyBytes,
    ttftMs: rounded(record.ttftMs),
    e2eMs: rounded(record.e2eMs) ?? 0,
    queueMs: rounded(record.queueMs) ?? 0,
    promptTokens: whole(record.promptTokens),
    cachedTokensPredicted: whole(record.cachedTokensPredicted),
    cachedTokensReported: record.cachedTokensReported,
    outputTokens: record.outputTokens,
  };
  return `${JSON.stringify(line)}\n`;
}

let timeText = "";
let timeMs = Number.NaN;

/** Made once a millisecond. */
function isoTime(epochMs: number): string {
  if (epochMs !== timeMs) {
    timeMs = epochMs;
    timeText = new Date(epochMs).toISOString();
  }
  return timeText;
}

/** A query may carry a key. */
function withoutQuery(path: string): string {
  const at = path.indexOf("?");
  return at < 0 ? path : path.slice(0, at);
}

function whole(value: number | null): number | null {
  return value === null ? null : Math.round(value);
}

function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 1000) / 1000;
}
