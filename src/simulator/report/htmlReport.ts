import type { Cell } from "../comparison.ts";
import { estimate } from "./confidence.ts";
import { FIGURES } from "./figures.ts";
import type { Figure } from "./figures.ts";
import { colourOf, escaped, svgPlot } from "./svgPlot.ts";
import type { PlotOptions, Series } from "./svgPlot.ts";
import { estimated } from "./tableText.ts";

const STYLE = `
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --faint: #ddd; --mark: #e7f3ea; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181b; --faint: #3a3d42; --mark: #1e3a28; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 1120px; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: color-mix(in srgb, var(--ink) 6%, transparent); padding: .7rem; border-radius: 6px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--faint); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } td.best { background: var(--mark); font-weight: 600; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 1rem; margin-top: 1rem; }
svg { width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: var(--ink); } svg text.title { font-weight: 600; font-size: 13px; }
svg .grid { stroke: var(--faint); stroke-width: 1; } .legend span { margin-right: 1.2rem; } .legend i { display: inline-block; width: 14px; height: 3px; vertical-align: middle; margin-right: .4rem; }
`;

/** The comparison as one page that needs nothing else: tables, and plots as inline SVG. */
export function htmlReport(command: string, cells: readonly Cell[]): string {
  const byRate = Map.groupBy(cells, ({ rate }) => rate);
  const labels = [...new Set(cells.map(({ router }) => router.label))];
  const seeds = cells[0]?.summaries.length ?? 0;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Kvasir simulation</title><style>${STYLE}</style></head>
<body><h1>Simulation: ${escaped(labels.join(", "))}</h1>
<pre>${escaped(command)}</pre>
<p>Means over ${seeds} ${seeds === 1 ? "seed" : "seeds"}${seeds > 1 ? ", ± the 95% confidence interval" : ""}. A request that was refused or failed counts as infinitely late in percentiles and is in no mean. The best value of each column is marked. Plots show the first seed.</p>
<p class="legend">${labels.map((name, at) => `<span><i style="background:${colourOf(at)}"></i>${escaped(name)}</span>`).join("")}</p>
${byRate.size > 1 ? `<h2>Over rates</h2><div class="plots">${overRates(cells, labels).join("")}</div>` : ""}
${[...byRate].map(([rate, ofRate]) => rateSection(rate, ofRate)).join("\n")}
</body></html>
`;
}

function rateSection(rate: number, cells: readonly Cell[]): string {
  return `<h2>Rate ${rate}</h2>
<div class="scroll"><table><tr><th>router</th>${FIGURES.map(({ title }) => `<th>${escaped(title)}</th>`).join("")}</tr>
${cells.map((cell) => `<tr><td>${escaped(cell.router.label)}</td>${FIGURES.map((figure) => cellText(figure, cell, cells)).join("")}</tr>`).join("\n")}
</table></div>
<div class="plots">${plotsOf(cells).join("")}</div>`;
}

function meanOf(figure: Figure, { summaries }: Cell): number {
  return estimate(summaries.map(figure.of)).mean;
}

function cellText(figure: Figure, cell: Cell, cells: readonly Cell[]): string {
  const text = estimated(figure, cell.summaries.map(figure.of));
  const values = cells.map((each) => meanOf(figure, each)).filter((value) => !Number.isNaN(value));
  const best = figure.best === "lowest" ? Math.min(...values) : Math.max(...values);
  const isBest = figure.best !== null && cells.length > 1 && meanOf(figure, cell) === best;
  return `<td${isBest ? ' class="best"' : ""}>${escaped(text)}</td>`;
}

function overRates(cells: readonly Cell[], labels: readonly string[]): readonly string[] {
  const drawn: readonly [key: string, options: Omit<PlotOptions, "xLabel">][] = [
    ["ttftMean", { title: "Mean TTFT", yLabel: "ms", logY: true }],
    ["ttftP99", { title: "p99 of TTFT", yLabel: "ms", logY: true }],
    ["tpotP99", { title: "p99 of TPOT", yLabel: "ms", logY: true }],
    ["goodShare", { title: "Requests within their targets", yLabel: "share" }],
    ["cachedShare", { title: "Prompt tokens found cached", yLabel: "share" }],
    ["missed", { title: "Refused and failed", yLabel: "requests" }],
  ];
  return drawn.map(([key, options]) => {
    const figure = FIGURES.find((each) => each.key === key)!;
    const series = labels.map((name): Series => ({
      name,
      points: cells
        .filter(({ router }) => router.label === name)
        .map((cell) => [cell.rate, meanOf(figure, cell)] as const),
    }));
    return svgPlot(series, { ...options, xLabel: "rate", fitX: true });
  });
}

function plotsOf(cells: readonly Cell[]): readonly string[] {
  const series = (points: (cell: Cell) => Series["points"]): Series[] =>
    cells.map((cell) => ({ name: cell.router.label, points: points(cell) }));
  const over = (value: (moment: Cell["curves"]["timeline"][number]) => number): Series[] =>
    series(({ curves }) => curves.timeline.map((moment) => [moment.atMs / 1000, value(moment)] as const));
  const shares = (values: readonly number[]): Series["points"] =>
    values.map((value, percent) => [value, percent / 100] as const);
  const seconds = { xLabel: "seconds" };
  return [
    svgPlot(
      series(({ curves }) => shares(curves.ttftMs)),
      { title: "Share of requests with a TTFT up to", xLabel: "ms", yLabel: "share", logX: true },
    ),
    svgPlot(
      series(({ curves }) => shares(curves.tpotMs)),
      { title: "Share of requests with a TPOT up to", xLabel: "ms", yLabel: "share", logX: true },
    ),
    svgPlot(
      over(({ atEngines }) => atEngines),
      { title: "Requests at the engines", yLabel: "requests", ...seconds },
    ),
    svgPlot(
      over(({ waiting }) => waiting),
      { title: "Requests waiting in the router", yLabel: "requests", ...seconds },
    ),
    svgPlot(
      over(({ kvUsage }) => kvUsage),
      { title: "KV memory held by running requests", yLabel: "share", ...seconds },
    ),
    svgPlot(
      over(({ variation }) => variation),
      { title: "Imbalance: variation of requests over engines", yLabel: "coefficient of variation", ...seconds },
    ),
  ];
}
