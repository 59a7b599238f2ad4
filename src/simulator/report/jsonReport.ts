import type { Cell } from "../comparison.ts";
import { estimate } from "./confidence.ts";
import { FIGURES } from "./figures.ts";

/** Version of the report's form; it changes when a reader of the old one would misread the new one. */
const FORMAT = 1;

/**
 * Everything that was found, as JSON. The same command gives the same bytes: no clock, no machine. `null` stands for
 * "missed" (an infinite time) and for what there is none of.
 */
export function jsonReport(command: unknown, cells: readonly Cell[]): string {
  const report = {
    format: FORMAT,
    command,
    cells: cells.map(({ rate, router, summaries, curves }) => ({
      rate,
      router,
      figures: Object.fromEntries(FIGURES.map(({ key, of }) => [key, estimate(summaries.map(of))])),
      seeds: summaries,
      curves,
    })),
  };
  return `${JSON.stringify(report, rounded, 1)}\n`;
}

/** Seven digits are more than a simulation knows, and hide what differs between two processors. */
function rounded(_key: string, value: unknown): unknown {
  return typeof value === "number" && Number.isFinite(value) ? Number(value.toPrecision(7)) : value;
}
