import type { Content } from "../workload/content.ts";
import type { Sender } from "../workload/mix.ts";

/** One request of a recorded trace, in order of time. */
export interface TraceRow {
  /** Since the trace's begin. */
  readonly atMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Null: the trace does not say what prompts have in common; each is taken to be unlike all others. */
  readonly content: Content | null;
  readonly session: string | null;
  /** Absent: the trace does not say, and it is drawn. */
  readonly sender?: Sender;
}

export interface Trace {
  readonly rows: readonly TraceRow[];
  /** Times are rounded down to multiples of this; 0: they are exact. */
  readonly bucketMs: number;
  /** Tokens of a block of the identity that prompts had when the trace was made; absent: not known. */
  readonly identityTokens?: number;
  /** The one that all requests are for; absent: the trace does not say. */
  readonly model?: string;
}

export type TraceFormat = "mooncake" | "azure" | "burstgpt" | "bailian";

/** A trace that cannot be read: names the file and the line. */
export class TraceError extends Error {
  override readonly name = "TraceError";
}

/** Rows in order of time, the first at zero; rows of one moment stay in the file's order. */
export function fromFirst(rows: readonly TraceRow[]): TraceRow[] {
  const sorted = rows.toSorted((a, b) => a.atMs - b.atMs);
  const firstMs = sorted[0]?.atMs ?? 0;
  return sorted.map((row) => ({ ...row, atMs: row.atMs - firstMs }));
}
