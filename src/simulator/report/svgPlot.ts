/** One line of a plot. Points that are not finite are left out. */
export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface PlotOptions {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  /** Logarithmic x axis; values up to zero are left out. */
  readonly logX?: boolean;
  readonly logY?: boolean;
  /** The x axis begins with the data; else at zero. */
  readonly fitX?: boolean;
}

const WIDTH = 520;
const HEIGHT = 300;
const LEFT = 64;
const RIGHT = 12;
const TOP = 30;
const BOTTOM = 44;
/** Told apart by people who do not see all colours, too (Okabe and Ito). */
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#777777"];

export function colourOf(at: number): string {
  return COLOURS[at % COLOURS.length]!;
}

/** A line plot as SVG text, without scripts or references. */
export function svgPlot(series: readonly Series[], options: PlotOptions): string {
  const drawn = series.map(({ name, points }) => ({
    name,
    points: points.filter(
      ([x, y]) =>
        Number.isFinite(x) &&
        Number.isFinite(y) &&
        (x > 0 || options.logX !== true) &&
        (y > 0 || options.logY !== true),
    ),
  }));
  const all = drawn.flatMap(({ points }) => points);
  const x = axis(
    all.map((point) => point[0]),
    options.logX === true,
    [LEFT, WIDTH - RIGHT],
    options.fitX === true,
  );
  const y = axis(
    all.map((point) => point[1]),
    options.logY === true,
    [HEIGHT - BOTTOM, TOP],
  );
  const lines = drawn.map(({ name, points }, at) => {
    const path = points.map(([px, py]) => `${x.place(px).toFixed(1)},${y.place(py).toFixed(1)}`).join(" ");
    return `<polyline fill="none" stroke="${colourOf(at)}" stroke-width="1.6" points="${path}"><title>${escaped(name)}</title></polyline>`;
  });
  const grid = [
    ...x.ticks.map((tick) => {
      const at = x.place(tick).toFixed(1);
      return `<line class="grid" x1="${at}" x2="${at}" y1="${TOP}" y2="${HEIGHT - BOTTOM}"/><text x="${at}" y="${HEIGHT - BOTTOM + 15}" text-anchor="middle">${label(tick)}</text>`;
    }),
    ...y.ticks.map((tick) => {
      const at = y.place(tick);
      return `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at.toFixed(1)}" y2="${at.toFixed(1)}"/><text x="${LEFT - 6}" y="${(at + 3.5).toFixed(1)}" text-anchor="end">${label(tick)}</text>`;
    }),
  ];
  const middle = (HEIGHT - BOTTOM + TOP) / 2;
  return [
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escaped(options.title)}">`,
    `<text class="title" x="${LEFT}" y="18">${escaped(options.title)}</text>`,
    ...grid,
    ...lines,
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 8}" text-anchor="middle">${escaped(options.xLabel)}</text>`,
    `<text x="14" y="${middle}" text-anchor="middle" transform="rotate(-90 14 ${middle})">${escaped(options.yLabel)}</text>`,
    "</svg>",
  ].join("");
}

export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

interface Axis {
  readonly place: (value: number) => number;
  readonly ticks: readonly number[];
}

function axis(
  values: readonly number[],
  logarithmic: boolean,
  [from, to]: readonly [number, number],
  fits = false,
): Axis {
  let low = values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
  let high = values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  if (values.length === 0) [low, high] = [1, 10];
  if (!logarithmic && !fits) low = Math.min(0, low);
  if (low === high) high = low + (low === 0 ? 1 : Math.abs(low));
  const scaled = logarithmic ? Math.log10 : (value: number) => value;
  const [first, last] = [scaled(low), scaled(high)];
  return {
    place: (value) => from + ((scaled(value) - first) / (last - first)) * (to - from),
    ticks: logarithmic ? decades(low, high) : steps(low, high),
  };
}

/** Powers of ten; where the range has few, twice and five times as well. */
function decades(low: number, high: number): readonly number[] {
  const fine = Math.log10(high / low) < 2.5;
  const ticks: number[] = [];
  for (let exponent = Math.floor(Math.log10(low)); exponent <= Math.ceil(Math.log10(high)); exponent++)
    for (const factor of fine ? [1, 2, 5] : [1]) ticks.push(factor * 10 ** exponent);
  return ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
}

function steps(low: number, high: number): readonly number[] {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough;
  const ticks: number[] = [];
  for (let at = Math.ceil(low / step); at * step <= high * 1.0001; at++) ticks.push(at * step);
  return ticks;
}

function label(value: number): string {
  if (value >= 1_000_000) return `${Number((value / 1_000_000).toPrecision(3))}M`;
  if (value >= 10_000) return `${Number((value / 1_000).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
}
