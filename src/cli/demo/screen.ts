/** One replica's line. */
export interface ReplicaLine {
  readonly name: string;
  readonly state: string;
  readonly requests: number;
  /** Share of KV memory, 0..1; null: not known. */
  readonly kvUsage: number | null;
  readonly pendingPrefillTokens: number;
  readonly answered: number;
}

/** What the demo shows at one moment. */
export interface DemoView {
  readonly fleet: string;
  readonly gatewayUrl: string;
  readonly statusUrl: string;
  readonly curl: string;
  readonly elapsedS: number;
  readonly sent: number;
  readonly inFlight: number;
  readonly answered: number;
  readonly failed: number;
  readonly ttftP50Ms: number | null;
  readonly ttftP99Ms: number | null;
  readonly cachedShare: number;
  readonly outputTokens: number;
  readonly queued: number;
  readonly replicas: readonly ReplicaLine[];
}

const BAR_WIDTH = 24;
const number = new Intl.NumberFormat("en");

function bar(share: number): string {
  const filled = Math.round(Math.min(1, Math.max(0, share)) * BAR_WIDTH);
  return "█".repeat(filled) + "░".repeat(BAR_WIDTH - filled);
}

const percent = (share: number | null): string => (share === null ? "–" : `${Math.round(share * 100)}%`);
const millis = (ms: number | null): string =>
  ms === null ? "–" : ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;

const BETWEEN = " · ";

/** The line that sums it up, for a log. */
export function summaryLine(view: DemoView): string {
  return summary(view).join(BETWEEN);
}

/** The same on as many lines as the terminal's width takes. */
function summaryLines(view: DemoView, columns: number): string[] {
  const lines: string[] = [];
  for (const part of summary(view)) {
    const joined = `${lines.at(-1) ?? ""}${BETWEEN}${part}`;
    if (lines.length > 0 && joined.length <= columns) lines[lines.length - 1] = joined;
    else lines.push(part);
  }
  return lines;
}

function summary(view: DemoView): string[] {
  const perSecond = (amount: number): string => (view.elapsedS > 0 ? (amount / view.elapsedS).toFixed(1) : "0.0");
  return [
    `${number.format(view.answered)} answered (${perSecond(view.answered)}/s), ${view.failed} failed`,
    `${view.inFlight} in flight, ${view.queued} queued`,
    `TTFT p50 ${millis(view.ttftP50Ms)}, p99 ${millis(view.ttftP99Ms)}`,
    `${percent(view.cachedShare)} of prompt tokens cached`,
    `${perSecond(view.outputTokens)} tokens/s`,
  ];
}

/** Where to look and what to try. */
export function banner(view: Pick<DemoView, "fleet" | "gatewayUrl" | "statusUrl" | "curl">): string[] {
  return [
    `Kvasir in front of ${view.fleet}`,
    `  gateway      ${view.gatewayUrl}/v1`,
    `  status page  ${view.statusUrl}`,
    "  try it       (in another terminal)",
    `    ${view.curl}`,
    "",
  ];
}

/** The whole screen, as lines. The load bars are relative to the busiest replica. */
export function screen(view: DemoView, columns: number): string[] {
  const most = Math.max(8, ...view.replicas.map(({ requests }) => requests));
  const width = Math.max(7, ...view.replicas.map(({ name }) => name.length));
  return [
    ...banner(view),
    ...summaryLines(view, columns),
    "",
    `${"replica".padEnd(width)}  ${"requests".padEnd(BAR_WIDTH + 5)}  ${"KV".padStart(4)}  ${"pending tokens".padStart(14)}  ${"answered".padStart(8)}  state`,
    ...view.replicas.map((replica) =>
      [
        replica.name.padEnd(width),
        `${bar(replica.requests / most)} ${String(replica.requests).padStart(4)}`,
        percent(replica.kvUsage).padStart(4),
        number.format(replica.pendingPrefillTokens).padStart(14),
        number.format(replica.answered).padStart(8),
        replica.state,
      ].join("  "),
    ),
    "",
    "Ctrl-C stops everything.",
  ];
}
