import { readFileSync } from "node:fs";
import { z } from "zod";
import { RecordingError } from "#src/recording/format/recordingError.ts";
import { isRecording } from "#src/recording/read/readFile.ts";
import { AzureReader } from "./azure.ts";
import { BailianReader } from "./bailian.ts";
import { BurstGptReader } from "./burstGpt.ts";
import { MOONCAKE_BUCKET_MS, readMooncakeRow } from "./mooncake.ts";
import { readRecordingTrace } from "./recordingTrace.ts";
import { fromFirst, TraceError } from "./traceRow.ts";
import type { Trace, TraceFormat, TraceRow } from "./traceRow.ts";

const MAX_ROWS = 5_000_000;

/**
 * Reads a trace; `maxRows` of it at most. Throws TraceError with the line that cannot be read. `model`: whose requests to
 * take, of a recording that has several.
 */
export function readTrace(path: string, maxRows = MAX_ROWS, model?: string): Trace {
  let text: string;
  try {
    if (isRecording(path)) return readRecordingTrace(path, maxRows, model);
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if (cause instanceof TraceError) throw cause;
    if (cause instanceof RecordingError) throw new TraceError(cause.message, { cause });
    throw new TraceError(`${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  }
  return parseTrace(text, path, maxRows);
}

/** The same from text; `name` is for errors. */
export function parseTrace(text: string, name: string, maxRows = MAX_ROWS): Trace {
  const lines = text.split(/\r?\n/u);
  const format = formatOf(lines[0] ?? "");
  if (format === null)
    throw new TraceError(
      `${name} is no trace that is known here: Mooncake or Bailian JSON lines, Azure or BurstGPT CSV, a recording of Kvasir's.`,
    );
  const rows: TraceRow[] = [];
  let read: (line: string) => TraceRow | null;
  let at = 0;
  try {
    read = readerOf(format, lines[0]!);
    for (at = format === "azure" || format === "burstgpt" ? 1 : 0; at < lines.length; at++) {
      const line = lines[at]!;
      if (line.trim() === "") continue;
      if (rows.length >= Math.min(maxRows, MAX_ROWS)) break;
      const row = read(line);
      if (row !== null) rows.push(row);
    }
  } catch (cause) {
    throw new TraceError(`${name}:${at + 1} is no row of a ${format} trace: ${reason(cause)}`, { cause });
  }
  if (rows.length === 0) throw new TraceError(`${name} holds no rows.`);
  const bucketMs = format === "mooncake" ? MOONCAKE_BUCKET_MS : 0;
  return { rows: fromFirst(rows), bucketMs };
}

function readerOf(format: TraceFormat, firstLine: string): (line: string) => TraceRow | null {
  if (format === "mooncake") return (line) => readMooncakeRow(JSON.parse(line));
  if (format === "bailian") {
    const reader = new BailianReader();
    return (line) => reader.read(JSON.parse(line));
  }
  const reader = format === "azure" ? new AzureReader(firstLine) : new BurstGptReader(firstLine);
  return (line) => reader.read(line);
}

function formatOf(firstLine: string): TraceFormat | null {
  if (firstLine.startsWith("{")) return firstLine.includes('"chat_id"') ? "bailian" : "mooncake";
  const header = firstLine.toLowerCase();
  if (header.includes("contexttokens")) return "azure";
  return header.includes("request tokens") ? "burstgpt" : null;
}

function reason(cause: unknown): string {
  if (cause instanceof z.ZodError)
    return cause.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");
  return cause instanceof Error ? cause.message : String(cause);
}
