/** One sample line. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The wanted series of one scrape, by metric name. */
export interface Scrape {
  /** Samples in the order of the text; none if the name is absent. */
  samples(name: string): readonly Sample[];
  /** Lines that are neither comments nor samples. */
  readonly malformedLines: number;
}

const NO_SAMPLES: readonly Sample[] = [];
const NO_LABELS: Readonly<Record<string, string>> = {};

const TAB = 9;
const SPACE = 32;
const HASH = 35;
const OPEN_BRACE = 123;

/**
 * Reads Prometheus' text format 0.0.4 and what OpenMetrics adds to it (exemplars, `# EOF`). A scrape of vLLM has some
 * 700 lines, most of them histogram buckets, and comes from every replica each second: only the names that are wanted
 * are read past their name, the rest costs one look-up a line.
 *
 * Not a package: the one for this on npm builds every family as objects with string values and is not maintained.
 */
export function parsePrometheusText(text: string, wanted: ReadonlySet<string>): Scrape {
  const byName = new Map<string, Sample[]>();
  let malformedLines = 0;
  for (let start = 0; start < text.length;) {
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline;
    const nameStart = skipBlanks(text, start, end);
    const nameEnd = endOfName(text, nameStart, end);
    if (nameEnd > nameStart) {
      const name = text.slice(nameStart, nameEnd);
      if (wanted.has(name)) {
        const sample = readSample(text, nameEnd, end);
        const samples = byName.get(name);
        if (sample === null) malformedLines++;
        else if (samples === undefined) byName.set(name, [sample]);
        else samples.push(sample);
      }
    } else if (nameStart < end && text.charCodeAt(nameStart) !== HASH && text.slice(nameStart, end).trim() !== "") {
      malformedLines++;
    }
    start = end + 1;
  }
  return { samples: (name) => byName.get(name) ?? NO_SAMPLES, malformedLines };
}

/** `[a-zA-Z_:][a-zA-Z0-9_:]*`; a leading digit is let through, as no wanted name has one. */
function endOfName(text: string, from: number, end: number): number {
  let at = from;
  for (; at < end; at++) {
    const code = text.charCodeAt(at);
    const isNameCode =
      (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95 || (code >= 48 && code <= 58);
    if (!isNameCode) break;
  }
  return at;
}

function skipBlanks(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && (text.charCodeAt(at) === SPACE || text.charCodeAt(at) === TAB)) at++;
  return at;
}

/** What follows the name: labels, value and maybe a time stamp or an exemplar, which are not read. */
function readSample(text: string, from: number, end: number): Sample | null {
  let at = skipBlanks(text, from, end);
  let labels = NO_LABELS;
  if (at < end && text.charCodeAt(at) === OPEN_BRACE) {
    const read = readLabels(text, at + 1, end);
    if (read === null) return null;
    labels = read.labels;
    at = read.end;
  } else if (at === from) {
    return null;
  }
  at = skipBlanks(text, at, end);
  let valueEnd = at;
  while (valueEnd < end && text.charCodeAt(valueEnd) > SPACE) valueEnd++;
  const value = readValue(text.slice(at, valueEnd));
  return value === null ? null : { labels, value };
}

const LABEL = /[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\\n]|\\[^\n])*)"[ \t]*(,?)/y;
const CLOSE = /[ \t]*\}/y;

function readLabels(text: string, from: number, end: number): { labels: Record<string, string>; end: number } | null {
  const labels: Record<string, string> = {};
  let at = from;
  for (let more = true; more;) {
    LABEL.lastIndex = at;
    const match = LABEL.exec(text);
    if (match === null || LABEL.lastIndex > end) break;
    const [, name = "", value = "", comma] = match;
    labels[name] = value.includes("\\") ? unescape(value) : value;
    at = LABEL.lastIndex;
    more = comma === ",";
  }
  CLOSE.lastIndex = at;
  return CLOSE.test(text) && CLOSE.lastIndex <= end ? { labels, end: CLOSE.lastIndex } : null;
}

/** `\\`, `\"` and `\n`; any other backslash stands for itself, as Prometheus reads it. */
function unescape(value: string): string {
  return value.replace(/\\([\\"n])/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

function readValue(text: string): number | null {
  if (NUMBER.test(text)) return Number(text);
  const spelled = text.toLowerCase();
  if (spelled === "nan") return Number.NaN;
  if (spelled === "+inf" || spelled === "inf") return Number.POSITIVE_INFINITY;
  return spelled === "-inf" ? Number.NEGATIVE_INFINITY : null;
}
