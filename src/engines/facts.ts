import type { Sample, Scrape } from "./prometheusText.ts";
import type { EngineMetrics, Fact } from "./vocabulary.ts";

/** Facts while they are gathered. */
export type Gathered = { -readonly [fact in Fact]: EngineMetrics[fact] };

/** The facts that are one number. */
export type NumericFact = { [fact in Fact]: number extends EngineMetrics[fact] ? fact : never }[Fact];

export type FactSources = Readonly<Partial<Record<Fact, readonly string[]>>>;

export function nothingKnown(): Gathered {
  return {
    runningRequests: null,
    waitingRequests: null,
    kvUsage: null,
    kvCapacityTokens: null,
    kvBlockTokens: null,
    maxRunningRequests: null,
    prefixQueriedTokensTotal: null,
    prefixHitTokensTotal: null,
    preemptionsTotal: null,
    promptTokensTotal: null,
    generatedTokensTotal: null,
    residentAdapters: null,
    maxResidentAdapters: null,
    draftTokensTotal: null,
    acceptedDraftTokensTotal: null,
    prefixCachingEnabled: null,
    asleep: null,
  };
}

/** Both spellings of a counter: the exposition adds `_total`, some re-implementations of an engine's surface do not. */
export function counter(name: string): readonly string[] {
  return [`${name}_total`, name];
}

/** Samples of the first name that has any: names are given newest first, and a scrape may hold the old one too. */
export function samplesOf(scrape: Scrape, names: readonly string[] | undefined): readonly Sample[] {
  for (const name of names ?? []) {
    const samples = scrape.samples(name);
    if (samples.length > 0) return samples;
  }
  return [];
}

/** Sum over samples, or null if there is none that is a number. */
export function sumOf(samples: readonly Sample[]): number | null {
  let sum: number | null = null;
  for (const { value } of samples) if (Number.isFinite(value)) sum = (sum ?? 0) + value;
  return sum;
}

/** A number in a label, which Python writes as `"16"` or `"None"`. */
export function numberLabel(sample: Sample | undefined, name: string): number | null {
  const text = sample?.labels[name];
  if (text === undefined || !/^\d+(\.\d+)?$/.test(text)) return null;
  return Number(text);
}

/** Expected facts that at least one rank lacks. */
export function missingOf(byRank: ReadonlyMap<number, EngineMetrics>, expected: readonly Fact[]): Fact[] {
  if (byRank.size === 0) return [...expected];
  return expected.filter((fact) => [...byRank.values()].some((metrics) => metrics[fact] === null));
}

/** Groups by a key; groups and their samples keep the order of the text. */
export function groupSamples(samples: readonly Sample[], keyOf: (sample: Sample) => number): Map<number, Sample[]> {
  const groups = new Map<number, Sample[]>();
  for (const sample of samples) {
    const key = keyOf(sample);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [sample]);
    else group.push(sample);
  }
  return groups;
}

export const PROCESS_START = "process_start_time_seconds";
