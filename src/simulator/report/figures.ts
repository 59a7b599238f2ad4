import type { Service, Summary } from "./summary.ts";

/** One number of a summary, as tables show it. */
export interface Figure<Of = Summary> {
  readonly key: string;
  readonly title: string;
  readonly unit: "ms" | "%" | "ratio" | "count" | "/s";
  readonly of: (of: Of) => number;
  /** Null: neither is better. */
  readonly best: "lowest" | "highest" | null;
}

/** Those that a class of requests has too. */
export const SERVICE_FIGURES: readonly Figure<Service>[] = [
  { key: "ttftMean", title: "TTFT mean", unit: "ms", of: (s) => s.ttftMs.mean, best: "lowest" },
  { key: "ttftP50", title: "p50", unit: "ms", of: (s) => s.ttftMs.p50, best: "lowest" },
  { key: "ttftP90", title: "p90", unit: "ms", of: (s) => s.ttftMs.p90, best: "lowest" },
  { key: "ttftP99", title: "p99", unit: "ms", of: (s) => s.ttftMs.p99, best: "lowest" },
  { key: "tpotMean", title: "TPOT mean", unit: "ms", of: (s) => s.tpotMs.mean, best: "lowest" },
  { key: "tpotP99", title: "p99", unit: "ms", of: (s) => s.tpotMs.p99, best: "lowest" },
  { key: "e2eMean", title: "E2E mean", unit: "ms", of: (s) => s.e2eMs.mean, best: "lowest" },
  { key: "e2eP99", title: "p99", unit: "ms", of: (s) => s.e2eMs.p99, best: "lowest" },
  { key: "queueMean", title: "queue mean", unit: "ms", of: (s) => s.queueMs.mean, best: "lowest" },
  { key: "goodShare", title: "good", unit: "%", of: (s) => s.goodShare, best: "highest" },
  { key: "tokenRate", title: "tokens/s", unit: "count", of: (s) => s.outputTokensPerSecond, best: "highest" },
  { key: "missed", title: "missed", unit: "count", of: (s) => s.refused + s.failed, best: "lowest" },
];

export const FIGURES: readonly Figure[] = [
  ...SERVICE_FIGURES,
  { key: "cachedShare", title: "cached", unit: "%", of: (s) => s.cachedShare, best: "highest" },
  {
    key: "cachedOfPooled",
    title: "of pooled",
    unit: "%",
    of: (s) => (s.pooledShare === null || s.pooledShare === 0 ? Number.NaN : s.cachedShare / s.pooledShare),
    best: "highest",
  },
  { key: "loadVariation", title: "load CV", unit: "ratio", of: (s) => s.loadVariation, best: "lowest" },
  { key: "busyVariation", title: "busy CV", unit: "ratio", of: (s) => s.busyVariation, best: "lowest" },
  { key: "fairness", title: "fairness", unit: "ratio", of: (s) => s.fairness, best: "highest" },
  { key: "slowdown", title: "slowdown", unit: "ratio", of: (s) => s.slowdown, best: "lowest" },
  { key: "longSlowdown", title: "of long", unit: "ratio", of: (s) => s.longPrompts.slowdown, best: "lowest" },
  { key: "longestWait", title: "longest wait", unit: "ms", of: (s) => s.longestWaitMs, best: "lowest" },
  { key: "preemptions", title: "preempted", unit: "count", of: (s) => s.preemptions, best: null },
];

/** A figure as people read it: times in the unit that suits their size. */
export function shown(value: number, unit: Figure["unit"]): string {
  if (Number.isNaN(value)) return "–";
  if (value === Number.POSITIVE_INFINITY) return "missed";
  switch (unit) {
    case "ms":
      if (value >= 100_000) return `${(value / 1000).toFixed(0)} s`;
      if (value >= 1_000) return `${(value / 1000).toFixed(value >= 10_000 ? 1 : 2)} s`;
      return `${value.toFixed(value >= 100 ? 0 : 1)} ms`;
    case "%":
      return `${(100 * value).toFixed(1)}%`;
    case "ratio":
      return value >= 100 ? value.toFixed(0) : value.toFixed(2);
    case "/s":
      return value.toFixed(2);
    case "count":
      return Number.isInteger(value) ? String(value) : value.toFixed(value >= 100 ? 0 : 1);
  }
  return String(value);
}
