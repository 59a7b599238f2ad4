import type { Random } from "#src/determinism/random.ts";
import type { Trace, TraceRow } from "../traces/traceRow.ts";
import type { Arrival, Workload } from "./arrival.ts";
import { drawSender } from "./mix.ts";
import type { Senders } from "./mix.ts";
import { randomFor } from "./seeds.ts";

/** Identities that no trace uses: prompts that are like no other, and answers. */
const UNIQUE_FROM = 2 ** 40;
const ANSWERS_FROM = 2 ** 41;

/**
 * A trace played `rate` times as fast. Where the trace rounds times down, each request is put anywhere in its bucket,
 * or whole buckets would arrive at once and no recorded service looked like that.
 */
export function openLoop(trace: Trace, rate: number, senders: Senders, seed: number): Workload {
  const jitter = randomFor(seed, "jitter");
  const sending = randomFor(seed, "senders");
  const arrivals = trace.rows
    .map((row, at) => arrivalOf(row, at, (row.atMs + jitter.next() * trace.bucketMs) / rate, senders, sending))
    .sort((a, b) => a.atMs - b.atMs);
  let next = 0;
  return { expected: arrivals.length, next: () => arrivals[next++] ?? null, ended: () => [] };
}

/** A refused client of a closed loop tries its next request after this time, not at once and for ever. */
const AFTER_REFUSAL_MS = 1_000;

/** `clients` clients, each of which sends the trace's next request as soon as its last one has ended. Times are ignored. */
export function closedLoop(trace: Trace, clients: number, senders: Senders, seed: number): Workload {
  const sending = randomFor(seed, "senders");
  let at = 0;
  let started = 0;
  const take = (atMs: number): Arrival | null => {
    const row = trace.rows[at];
    return row === undefined ? null : arrivalOf(row, at++, atMs, senders, sending);
  };
  return {
    expected: trace.rows.length,
    next: () => (started++ < clients ? take(0) : null),
    ended(_arrival, answered, nowMs) {
      const arrival = take(answered ? nowMs : nowMs + AFTER_REFUSAL_MS);
      return arrival === null ? [] : [arrival];
    },
  };
}

function arrivalOf(row: TraceRow, at: number, atMs: number, senders: Senders, random: Random): Arrival {
  const { promptTokens, outputTokens, content, session, sender } = row;
  return {
    atMs,
    content: content ?? { ids: [UNIQUE_FROM + at], tokens: promptTokens },
    promptTokens,
    outputTokens,
    answerId: ANSWERS_FROM + at,
    session,
    ...(sender ?? drawSender(senders, random)),
  };
}
