import { estimate } from "#src/simulator/report/confidence.ts";
import type { Estimate } from "#src/simulator/report/confidence.ts";
import { RATES, ROUTER_COUNTS } from "./cases.ts";
import type { Outcome } from "./contest.ts";
import type { Measures } from "./measure.ts";

/** A figure that is to be reached, and what was. */
export interface Judged {
  readonly caseTitle: string;
  readonly figure: string;
  /** By whom it is measured, e.g. the baseline that is best at it. */
  readonly against: string;
  readonly reached: Estimate;
  readonly target: string;
  readonly passes: boolean;
}

interface Ask {
  readonly figure: string;
  readonly key: string;
  /** `best`: over the baseline that is best at it. `self`: the figure itself. Else: over another case's Kvasir. */
  readonly of: "best" | "self" | { readonly caseKey: string } | { readonly baseline: string };
  readonly atMost?: number;
  readonly atLeast?: number;
  /** Difference instead of ratio. */
  readonly minus?: boolean;
}

const AT_LEAST_AS_GOOD: readonly Ask[] = [
  { figure: "mean TTFT", key: "ttftMean", of: "best", atMost: 1 },
  { figure: "p99 TTFT", key: "ttftP99", of: "best", atMost: 1 },
  { figure: "p99 TPOT", key: "tpotP99", of: "best", atMost: 1 },
  { figure: "cached, of pooled LRU", key: "cachedOfPooled", of: "self", atLeast: 0.92 },
];

const BY_RATE: Readonly<Record<(typeof RATES)[number], readonly Ask[]>> = {
  1: AT_LEAST_AS_GOOD,
  1.5: AT_LEAST_AS_GOOD,
  2.2: [
    { figure: "mean TTFT", key: "ttftMean", of: "best", atMost: 0.9 },
    { figure: "p99 TTFT", key: "ttftP99", of: "best", atMost: 1 },
  ],
  2.6: [
    { figure: "mean TTFT", key: "ttftMean", of: "best", atMost: 0.3 },
    { figure: "p99 TTFT", key: "ttftP99", of: "best", atMost: 1 },
    { figure: "refused or failed", key: "missed", of: "self", atMost: 0 },
    { figure: "slowdown of long prompts", key: "longSlowdown", of: { baseline: "kvasir@immediate" }, atMost: 1.5 },
  ],
};

const ASKS: Readonly<Record<string, readonly Ask[]>> = {
  ...Object.fromEntries(
    ["conversation", "synthetic"].flatMap((name) => RATES.map((rate) => [`${name}-${rate}`, BY_RATE[rate]])),
  ),
  "azure-code": [{ figure: "p99 TTFT", key: "ttftP99", of: "best", atMost: 0.85 }],
  "half-slow": [
    { figure: "mean TTFT", key: "ttftMean", of: "best", atMost: 1 / 1.5 },
    { figure: "seconds until learned", key: "learnedSeconds", of: "self", atMost: 60 },
  ],
  overload: [
    {
      figure: "interactive p90 TTFT",
      key: "ttftP90:interactive",
      of: { caseKey: "overload-interactive-alone" },
      atMost: 1.2,
    },
    { figure: "batch tokens/s", key: "tokensPerSecond:batch", of: { caseKey: "overload-batch-alone" }, atLeast: 0.9 },
    { figure: "batch answered", key: "answered:batch", of: "self", atLeast: 1 },
  ],
  "slots-few": [
    { figure: "sent into a full batch", key: "intoFullBatch", of: "self", atMost: 0.01 },
    { figure: "mean TTFT", key: "ttftMean", of: { baseline: "least-connections" }, atMost: 0.9 },
  ],
  "slots-many": [
    { figure: "sent into a full batch", key: "intoFullBatch", of: "self", atMost: 0.01 },
    { figure: "mean TTFT", key: "ttftMean", of: { baseline: "least-connections" }, atMost: 0.9 },
  ],
  ...Object.fromEntries(
    ROUTER_COUNTS.filter((count) => count > 1).map((count): [string, readonly Ask[]] => [
      `routers-${count}`,
      [
        { figure: "cached share", key: "cachedShare", of: { caseKey: "routers-1" }, atLeast: 0.95 },
        { figure: "load CV", key: "loadVariation", of: { caseKey: "routers-1" }, minus: true, atMost: 0.05 },
      ],
    ]),
  ),
};

/** What can be judged with the outcomes at hand. */
export function judge(outcomes: readonly Outcome[]): readonly Judged[] {
  return outcomes.flatMap((outcome) =>
    (ASKS[outcome.case.key] ?? []).flatMap((ask) => {
      const compared = measuredBy(ask, outcome, outcomes);
      if (compared === null) return [];
      const { against, runs } = compared;
      const reached = estimate(
        outcome.kvasir.map((own, seed) => {
          const value = own[ask.key]!;
          if (runs === null) return value;
          const other = runs[seed]![ask.key]!;
          return ask.minus === true ? value - other : value / other;
        }),
      );
      const target = ask.atMost === undefined ? `≥ ${shown(ask.atLeast!)}` : `≤ ${shown(ask.atMost)}`;
      const passes = ask.atMost === undefined ? reached.mean >= ask.atLeast! : reached.mean <= ask.atMost;
      return [{ caseTitle: outcome.case.title, figure: ask.figure, against, reached, target, passes }];
    }),
  );
}

function measuredBy(
  { key, of, minus }: Ask,
  outcome: Outcome,
  outcomes: readonly Outcome[],
): { readonly against: string; readonly runs: readonly Measures[] | null } | null {
  const prefix = minus === true ? "minus" : "over";
  if (of === "self") return { against: "", runs: null };
  if (of === "best") {
    const best = bestAt(key, outcome);
    return best === null ? null : { against: `${prefix} ${best.name}`, runs: best.runs };
  }
  if ("caseKey" in of) {
    const other = outcomes.find((each) => each.case.key === of.caseKey);
    return other === undefined ? null : { against: `${prefix} ${other.case.title}`, runs: other.kvasir };
  }
  const other =
    outcome.baselines.find(({ name }) => name === of.baseline) ??
    outcome.ablations.find(({ router }) => router === of.baseline);
  return other === undefined ? null : { against: `${prefix} ${of.baseline}`, runs: other.runs };
}

/** The baseline with the lowest mean of a figure. */
function bestAt(key: string, { baselines }: Outcome): Outcome["baselines"][number] | null {
  const meanOf = (runs: readonly Measures[]) => estimate(runs.map((run) => run[key]!)).mean;
  return baselines.toSorted((a, b) => meanOf(a.runs) - meanOf(b.runs))[0] ?? null;
}

/** Three digits are more than the seeds agree on. */
export function shown(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(3))) : "never";
}
