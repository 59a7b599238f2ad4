import { cells, columns, tokenCount } from "./csv.ts";
import type { TraceRow } from "./traceRow.ts";

const WANTED = ["Timestamp", "Request tokens", "Response tokens"] as const;

/**
 * BurstGPT: CSV with times in seconds, no prefixes; later releases name the session. Answers of no tokens are failures
 * of the recorded service and are left out. https://github.com/HPMLL/BurstGPT
 */
export class BurstGptReader {
  readonly #at: Record<(typeof WANTED)[number], number>;
  readonly #sessionAt: number;

  constructor(header: string) {
    this.#at = columns(header, WANTED);
    this.#sessionAt = cells(header).findIndex((name) => name.toLowerCase() === "session id");
  }

  /** Null: a failed request. */
  read(line: string): TraceRow | null {
    const row = cells(line);
    const seconds = Number(row[this.#at.Timestamp]);
    if (!(seconds >= 0)) throw new Error(`${JSON.stringify(row[this.#at.Timestamp])} is no time in seconds`);
    const outputTokens = tokenCount(row[this.#at["Response tokens"]]);
    if (outputTokens === 0) return null;
    const session = this.#sessionAt === -1 ? "" : (row[this.#sessionAt] ?? "");
    return {
      atMs: seconds * 1000,
      promptTokens: Math.max(1, tokenCount(row[this.#at["Request tokens"]])),
      outputTokens,
      content: null,
      session: session === "" ? null : `session-${session}`,
    };
  }
}
