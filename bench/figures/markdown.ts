import { FIGURES } from "#src/simulator/report/figures.ts";
import { estimated } from "#src/simulator/report/tableText.ts";
import type { Outcome } from "./contest.ts";
import type { Measures } from "./measure.ts";
import { shown } from "./targets.ts";
import type { Judged } from "./targets.ts";

/** Columns of the tables by case. */
const KEYS = [
  "ttftMean",
  "ttftP99",
  "tpotP99",
  "e2eMean",
  "goodShare",
  "cachedOfPooled",
  "loadVariation",
  "longSlowdown",
  "missed",
];
const COLUMNS = FIGURES.filter(({ key }) => KEYS.includes(key));
const TITLES: Readonly<Record<string, string>> = { ttftP99: "TTFT p99", tpotP99: "TPOT p99" };

/** What was asked and what was reached. */
export function targetTable(judged: readonly Judged[]): string {
  return table(
    ["Case", "Figure", "Reached", "Target", ""],
    judged.map(({ caseTitle, figure, against, reached, target, passes }) => [
      caseTitle,
      [figure, against].filter(Boolean).join(" "),
      Number.isFinite(reached.plusMinus) ? `${shown(reached.mean)} ± ${shown(reached.plusMinus)}` : shown(reached.mean),
      target,
      passes ? "reached" : "**missed**",
    ]),
  );
}

/** Everybody's figures in one case. */
export function caseTable(outcome: Outcome): string {
  const rows: readonly (readonly [label: string, runs: readonly Measures[]])[] = [
    ["**kvasir**", outcome.kvasir],
    ...outcome.baselines.map(({ router, runs }): [string, readonly Measures[]] => [`\`${router}\``, runs]),
    ...outcome.ablations.map(({ router, runs }): [string, readonly Measures[]] => [`_${router}_`, runs]),
  ];
  return `### ${outcome.case.title}\n\n${table(
    ["", ...COLUMNS.map(({ key, title }) => TITLES[key] ?? title)],
    rows.map(([label, runs]) => [
      label,
      ...COLUMNS.map((figure) =>
        estimated(
          figure,
          runs.map((run) => run[figure.key]!),
        ),
      ),
    ]),
  )}`;
}

/** The same as text, for a terminal: one line each. */
export function targetLines(judged: readonly Judged[]): string {
  return judged
    .map(({ caseTitle, figure, against, reached, target, passes }) => {
      const plusMinus = Number.isFinite(reached.plusMinus) ? ` ± ${shown(reached.plusMinus)}` : "";
      return `${passes ? "reached" : "MISSED "}  ${caseTitle}: ${figure} ${against} ${shown(reached.mean)}${plusMinus} (${target})`;
    })
    .join("\n");
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, at) => (at === 0 ? "---" : "--:"))), ...rows.map(line)].join("\n");
}
