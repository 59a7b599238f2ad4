import type { Cell } from "../comparison.ts";
import { estimate } from "./confidence.ts";
import { FIGURES, SERVICE_FIGURES, shown } from "./figures.ts";
import type { Figure } from "./figures.ts";

/** In the terminal there is room for the most telling ones. */
const KEYS = [
  "ttftMean",
  "ttftP50",
  "ttftP99",
  "tpotMean",
  "tpotP99",
  "e2eMean",
  "goodShare",
  "cachedShare",
  "cachedOfPooled",
  "loadVariation",
  "longSlowdown",
  "longestWait",
  "missed",
];
const COLUMNS = FIGURES.filter(({ key }) => KEYS.includes(key));

/** The comparison as text: one table per rate, one line per router; where there are several classes, a table of them. */
export function tableText(cells: readonly Cell[]): string {
  const byRate = Map.groupBy(cells, ({ rate }) => rate);
  return [...byRate]
    .flatMap(([rate, ofRate]) => {
      const tables = [`rate ${rate}\n${aligned(rowsOf(ofRate))}`];
      const classes = classNames(ofRate);
      if (classes.length > 1) tables.push(`rate ${rate}, by class\n${aligned(classRows(ofRate, classes))}`);
      return tables;
    })
    .join("\n\n");
}

function classNames(cells: readonly Cell[]): readonly string[] {
  return [
    ...new Set(cells.flatMap(({ summaries }) => summaries.flatMap(({ classes }) => Object.keys(classes)))),
  ].sort();
}

function classRows(cells: readonly Cell[], names: readonly string[]): string[][] {
  return [
    ["", ...SERVICE_FIGURES.map(({ title }) => title)],
    ...cells.flatMap(({ router, summaries }) =>
      names.map((name) => [
        `${router.label} ${name}`,
        ...SERVICE_FIGURES.map((figure) =>
          estimated(
            figure,
            summaries.flatMap(({ classes }) => (classes[name] === undefined ? [] : figure.of(classes[name]))),
          ),
        ),
      ]),
    ),
  ];
}

function rowsOf(cells: readonly Cell[]): string[][] {
  return [
    ["", ...COLUMNS.map(({ title }) => title)],
    ...cells.map(({ router, summaries }) => [
      router.label,
      ...COLUMNS.map((figure) => estimated(figure, summaries.map(figure.of))),
    ]),
  ];
}

/** A mean, with what it may be off by where several seeds tell. */
export function estimated({ unit }: Pick<Figure, "unit">, values: readonly number[]): string {
  const { mean, plusMinus } = estimate(values);
  const text = shown(mean, unit);
  // Counts and shares of one's own vary little, and a table full of them could not be read.
  return unit === "ms" && Number.isFinite(plusMinus) && mean > 0
    ? `${text} ±${((100 * plusMinus) / mean).toFixed(0)}%`
    : text;
}

function aligned(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
