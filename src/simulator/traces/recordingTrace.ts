import { RecordingError } from "#src/recording/format/recordingError.ts";
import type { InputRecord, RecordingRecord } from "#src/recording/format/records.ts";
import { Recording } from "#src/recording/read/recording.ts";
import type { Content } from "../workload/content.ts";
import { fromFirst, TraceError } from "./traceRow.ts";
import type { Trace, TraceRow } from "./traceRow.ts";

type Submit = Extract<InputRecord, { kind: "submit" }>;

/** Prompt parts that are in no block, and so like no other: above all identities of blocks. */
const TAILS_FROM = 2 ** 45;

/** One recorded request, as far as it is known. */
interface Seen {
  readonly submit: Submit;
  promptTokens: number | null;
  /** All sequences together; null: nothing of an answer was seen. */
  outputTokens: number | null;
}

/** Reads a recording of Kvasir's as a trace. Throws TraceError; `model` is needed where it has several. */
export function readRecordingTrace(path: string, maxRows: number, model?: string): Trace {
  try {
    return traceOfRecords(new Recording(path).records(), path, maxRows, model);
  } catch (caught) {
    if (caught instanceof RecordingError) throw new TraceError(caught.message, { cause: caught });
    throw caught;
  }
}

export function traceOfRecords(
  records: Iterable<RecordingRecord>,
  name: string,
  maxRows: number,
  model?: string,
): Trace {
  const seen = requestsOf(records, maxRows, model);
  const models = [...new Set(seen.map(({ submit }) => submit.request.model))];
  if (models.length > 1) throw new TraceError(`${name} has requests to ${models.join(", ")}: say which to take`);
  if (seen.length === 0) throw new TraceError(`${name} holds no requests${model === undefined ? "" : ` to ${model}`}.`);
  const identityTokens = meanBlockTokens(seen);
  return { rows: fromFirst(rowsOf(seen, identityTokens)), bucketMs: 0, identityTokens, model: models[0]! };
}

function requestsOf(records: Iterable<RecordingRecord>, maxRows: number, model: string | undefined): Seen[] {
  const all: Seen[] = [];
  /** Attempts of one request have its time of arrival in common, to the nanosecond. */
  const byArrival = new Map<number, Seen>();
  const byTicket = new Map<number, Seen>();
  const byPlace = new Map<number, Seen>();
  for (const record of records) {
    if (record.kind === "submit") {
      const { request, attempt, ticket } = record;
      if (model !== undefined && request.model !== model) continue;
      let one = attempt > 1 ? byArrival.get(request.arrivedMs) : undefined;
      if (one === undefined) {
        if (all.length >= maxRows) continue;
        all.push((one = { submit: record, promptTokens: null, outputTokens: null }));
        byArrival.set(request.arrivedMs, one);
      }
      byTicket.set(ticket, one);
    } else if (record.kind === "settled") {
      const one = byTicket.get(record.ticket);
      byTicket.delete(record.ticket);
      if (one !== undefined && record.result.placed !== null) byPlace.set(record.result.placed, one);
    } else if (record.kind === "firstToken" || record.kind === "progress") {
      const one = byPlace.get(record.place);
      const tokens = record.kind === "progress" ? record.outputTokens : 1;
      if (one !== undefined) one.outputTokens = Math.max(one.outputTokens ?? 0, tokens);
    } else if (record.kind === "finish") {
      const one = byPlace.get(record.place);
      byPlace.delete(record.place);
      if (one === undefined || record.outcome.kind !== "answered" || record.outcome.status >= 300) continue;
      one.promptTokens = record.outcome.usage.promptTokens;
      one.outputTokens = record.outcome.usage.outputTokens ?? one.outputTokens;
    }
  }
  return all;
}

function rowsOf(seen: readonly Seen[], blockTokens: number): TraceRow[] {
  const usualOutput = median(seen.flatMap(({ outputTokens }) => (outputTokens === null ? [] : [outputTokens])));
  const numbers = new Map<bigint, number>();
  let tails = TAILS_FROM;
  return seen.flatMap(({ submit, promptTokens, outputTokens }): TraceRow[] => {
    const { request } = submit;
    const { identity, sequences, generates } = request;
    // A list of prompts, or one prompt asked several times: as many sequences, which come at once.
    const promptEach = Math.max(1, Math.round(promptTokens ?? identity.promptTokens));
    const outputEach = generates ? Math.max(1, Math.round((outputTokens ?? usualOutput) / sequences)) : 0;
    const row = {
      atMs: submit.nowMs,
      promptTokens: promptEach,
      outputTokens: outputEach,
      session: request.session,
      content: contentOf(identity.hashes, blockTokens, promptEach, numbers, tails++),
      sender: { className: request.className, tenant: request.tenant, adapter: request.adapter },
    };
    return Array.from({ length: sequences }, () => row);
  });
}

/** Blocks by number in the order in which they were first seen, then what is in no whole block. */
function contentOf(
  hashes: BigUint64Array,
  blockTokens: number,
  promptTokens: number,
  numbers: Map<bigint, number>,
  tail: number,
): Content {
  const blocks = Math.min(hashes.length, Math.floor(promptTokens / blockTokens));
  const ids = new Float64Array(blocks + 1);
  const tokens = new Float64Array(blocks + 1);
  for (let at = 0; at < blocks; at++) {
    const hash = hashes[at]!;
    let number = numbers.get(hash);
    if (number === undefined) numbers.set(hash, (number = numbers.size));
    ids[at] = number;
    // Of a text, a block has so many tokens on average only.
    tokens[at] = Math.round((at + 1) * blockTokens) - Math.round(at * blockTokens);
  }
  ids[blocks] = tail;
  tokens[blocks] = promptTokens;
  return { ids, tokens };
}

/** The same for all, or prompts that have blocks in common would not have so many tokens in common. */
function meanBlockTokens(seen: readonly Seen[]): number {
  const sizes = seen.flatMap(({ submit: { request } }) =>
    request.identity.hashes.length === 0 ? [] : [request.identity.blockTokens],
  );
  return sizes.length === 0 ? 1 : sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? 1;
}
