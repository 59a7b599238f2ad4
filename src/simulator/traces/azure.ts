import { cells, columns, tokenCount } from "./csv.ts";
import type { TraceRow } from "./traceRow.ts";

const WANTED = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"] as const;

/** Azure's LLM inference traces, 2023 and 2024: CSV, no prefixes. https://github.com/Azure/AzurePublicDataset */
export class AzureReader {
  readonly #at: Record<(typeof WANTED)[number], number>;

  constructor(header: string) {
    this.#at = columns(header, WANTED);
  }

  read(line: string): TraceRow {
    const row = cells(line);
    const time = row[this.#at.TIMESTAMP] ?? "";
    const atMs = timeMs(time);
    if (Number.isNaN(atMs)) throw new Error(`${JSON.stringify(time)} is no time`);
    return {
      atMs,
      promptTokens: Math.max(1, tokenCount(row[this.#at.ContextTokens])),
      outputTokens: tokenCount(row[this.#at.GeneratedTokens]),
      content: null,
      session: null,
    };
  }
}

/** `2023-11-16 18:17:03.9799600`: seven digits of a second, of which `Date` takes three. */
function timeMs(text: string): number {
  const match = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?(?:Z|\+00:00)?$/u.exec(text);
  if (match === null) return Number.NaN;
  return Date.parse(`${match[1]}T${match[2]}Z`) + Number(match[3] ?? 0) * 1000;
}
