import { prefillMs } from "#src/hardware/stepTimes.ts";
import { ClassTable } from "#src/scheduler/classes.ts";
import type { Run } from "../run.ts";
import type { RequestRecord } from "../world/requestRecord.ts";
import type { World } from "../world/world.ts";
import { distribution, jainIndex, mean, quantile, variation } from "./distribution.ts";
import type { Distribution } from "./distribution.ts";

/** Of all requests, or of those of one class. A missed request counts as infinitely late. */
export interface Service {
  readonly requests: number;
  readonly answered: number;
  readonly refused: number;
  readonly failed: number;
  /** From arrival to the first token. */
  readonly ttftMs: Distribution;
  /** Of answers of two tokens and more: from the first to the last, per further token. */
  readonly tpotMs: Distribution;
  readonly e2eMs: Distribution;
  /** From arrival until its prompt is first worked on, in router and engine together. */
  readonly queueMs: Distribution;
  /** Requests answered within their class's targets of TTFT and TPOT, as a share of all, and per second. */
  readonly goodShare: number;
  readonly goodPerSecond: number;
  readonly outputTokensPerSecond: number;
}

export interface Summary extends Service {
  readonly seconds: number;
  /** Prompt tokens found cached, of all answered. */
  readonly cachedShare: number;
  /** What the router counted on, likewise. */
  readonly predictedCachedShare: number;
  /** The same of one cache as large as all together; null: not asked for. */
  readonly pooledShare: number | null;
  /** Coefficient of variation over engines of their busy time. */
  readonly busyVariation: number;
  /** The same of requests at an engine, at each sample, averaged over samples by load. */
  readonly loadVariation: number;
  /** Longest time that a request waited in a router. */
  readonly longestWaitMs: number;
  readonly preemptions: number;
  readonly retries: number;
  /** Jain's index over tenants of one over their mean slowdown; 1: all are served alike. */
  readonly fairness: number;
  /** TTFT over what the whole prompt takes alone on the GPU, averaged; of all, and of the tenth with the longest prompts. */
  readonly slowdown: number;
  readonly longPrompts: { readonly fromTokens: number; readonly slowdown: number; readonly ttftMs: Distribution };
  readonly classes: Readonly<Record<string, Service>>;
}

/** A tenth of all prompts is called long. */
const LONG_FROM_SHARE = 0.9;

export function summarise({ world }: Run, pooledShare: number | null): Summary {
  const { records, engines } = world;
  const seconds = world.nowMs / 1000;
  const answered = records.filter(isAnswered);
  const tokens = (of: (record: RequestRecord) => number) => answered.reduce((sum, record) => sum + of(record), 0);
  const promptTokens = tokens((record) => record.promptTokens);
  const longFrom = quantile(Float64Array.from(records, (record) => record.promptTokens).sort(), LONG_FROM_SHARE);
  const long = records.filter((record) => record.promptTokens >= longFrom);
  const slowdownOf = slowdowns(world);
  const classNames = [...new Set(records.map(({ className }) => className))].sort();
  const classes = new ClassTable(world.settings.classes);
  return {
    ...service(records, classes, seconds),
    seconds,
    cachedShare: tokens((record) => record.cachedTokens) / promptTokens,
    predictedCachedShare: tokens((record) => record.predictedCachedTokens) / promptTokens,
    pooledShare,
    busyVariation: variation(engines.map(({ busyMs }) => busyMs)),
    loadVariation: loadVariation(world),
    longestWaitMs: records.reduce(
      (most, { arrivedMs, boundMs, endedMs }) =>
        Math.max(most, (Number.isNaN(boundMs) ? endedMs : boundMs) - arrivedMs),
      0,
    ),
    preemptions: records.reduce((sum, { preemptions }) => sum + preemptions, 0),
    retries: records.reduce((sum, { attempts }) => sum + Math.max(0, attempts - 1), 0),
    fairness: fairness(records, slowdownOf),
    slowdown: mean(answered.map(slowdownOf)),
    longPrompts: {
      fromTokens: longFrom,
      slowdown: mean(long.filter(isAnswered).map(slowdownOf)),
      ttftMs: distribution(long.map(ttftMs)),
    },
    classes: Object.fromEntries(
      classNames.map((name) => [
        name,
        service(
          records.filter(({ className }) => className === name),
          classes,
          seconds,
        ),
      ]),
    ),
  };
}

function isAnswered({ ending }: RequestRecord): boolean {
  return ending === "answered";
}

function service(records: readonly RequestRecord[], classes: ClassTable, seconds: number): Service {
  const count = (ending: RequestRecord["ending"]) => records.filter((record) => record.ending === ending).length;
  const good = records.filter((record) => {
    const { ttftTargetMs, tpotTargetMs } = classes.get(record.className);
    return ttftMs(record) <= ttftTargetMs && !(tpotMs(record) > tpotTargetMs);
  }).length;
  return {
    requests: records.length,
    answered: count("answered"),
    refused: count("refused"),
    failed: count("failed"),
    ttftMs: distribution(records.map(ttftMs)),
    tpotMs: distribution(records.filter(({ outputTokens }) => outputTokens > 1).map(tpotMs)),
    e2eMs: distribution(records.map(e2eMs)),
    queueMs: distribution(records.map(queueMs)),
    goodShare: good / records.length,
    goodPerSecond: good / seconds,
    outputTokensPerSecond:
      records.reduce((sum, record) => sum + (isAnswered(record) ? record.outputTokens : 0), 0) / seconds,
  };
}

/** Infinity: it was never answered, or not to the end. */
export function ttftMs(record: RequestRecord): number {
  return isAnswered(record) ? record.firstTokenMs - record.arrivedMs : Number.POSITIVE_INFINITY;
}

/** NaN: it has no second token. */
export function tpotMs(record: RequestRecord): number {
  if (!isAnswered(record)) return Number.POSITIVE_INFINITY;
  return record.outputTokens > 1 ? (record.endedMs - record.firstTokenMs) / (record.outputTokens - 1) : Number.NaN;
}

function e2eMs(record: RequestRecord): number {
  return isAnswered(record) ? record.endedMs - record.arrivedMs : Number.POSITIVE_INFINITY;
}

function queueMs(record: RequestRecord): number {
  return isAnswered(record) ? record.scheduledMs - record.arrivedMs : Number.POSITIVE_INFINITY;
}

/** By the first engine's times, so that a slow replica shows as slow service. */
function slowdowns({ engines }: World): (record: RequestRecord) => number {
  const { times } = engines[0]!.setup.core;
  return (record) => ttftMs(record) / prefillMs(times, record.promptTokens, 0);
}

function fairness(records: readonly RequestRecord[], slowdownOf: (record: RequestRecord) => number): number {
  const byTenant = Map.groupBy(records, ({ tenant }) => tenant);
  return jainIndex(
    [...byTenant.values()].map((own) => {
      const answered = own.filter(isAnswered);
      // Who is refused is served the less.
      return answered.length === 0 ? 0 : answered.length / own.length / mean(answered.map(slowdownOf));
    }),
  );
}

/** Weighted by load: an idle fleet with one request is as unbalanced as can be, and nobody minds. */
function loadVariation({ samples }: World): number {
  const { engines, requests } = samples;
  let weighted = 0;
  let weights = 0;
  for (let at = 0; at < requests.length; at += engines) {
    const counts = requests.slice(at, at + engines);
    const weight = counts.reduce((sum, count) => sum + count, 0);
    weighted += weight * variation(counts);
    weights += weight;
  }
  return weights === 0 ? 0 : weighted / weights;
}
