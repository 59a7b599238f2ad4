/*
 * Where a long text may be cut so that its parts, encoded one by one, give the tokens of the whole: so that a document
 * which many prompts begin with is encoded once.
 *
 * The cut is between a line break and an ASCII letter or digit. It changes nothing if no word of the pre-tokenizer
 * reaches across it, and if no word before it depends on what follows. That was shown for each of these alternatives,
 * of which the patterns of language models are made:
 * - none can match a line break and then a letter or digit (what comes before letters excludes \r and \n);
 * - white space that ends with a line break is taken whole by `\s*[\r\n]+`, or by the end of the alternative for
 *   punctuation, before `\s+(?!\S)` could look at what follows.
 * What no alternative matches is a word too. One of the patterns has to match every line break, so that none is in such
 * a word.
 * The NFC of a text is that of its parts too: neither a line break nor an ASCII character composes with what is before.
 */

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const UPPER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const LOWER = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
const NEWLINES = "\\s*[\\r\\n]+";
const LOOKS_AHEAD = "\\s+(?!\\S)";

const SAFE: ReadonlySet<string> = new Set([
  CONTRACTIONS,
  "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+",
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+",
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}*${LOWER}+${CONTRACTIONS}?`,
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}+${LOWER}*${CONTRACTIONS}?`,
  "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+",
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+",
  "\\p{N}",
  "\\p{N}+",
  "\\p{N}{1,3}",
  "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
  " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*",
  " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*",
  " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*",
  " ?[\\p{P}\\p{S}]+[\\r\\n]*",
  NEWLINES,
  LOOKS_AHEAD,
  "\\s+",
]);

/** Whether words that are found by these patterns, one after another, keep to one side of a cut. */
export function keepsToLines(patterns: readonly string[]): boolean {
  const all = patterns.map((pattern) => alternativesOf(pattern.replaceAll("\r", "\\r").replaceAll("\n", "\\n")));
  return all.every(isSafe) && all.some((alternatives) => alternatives.includes(NEWLINES));
}

function isSafe(alternatives: readonly string[]): boolean {
  const lookahead = alternatives.indexOf(LOOKS_AHEAD);
  const newlines = alternatives.indexOf(NEWLINES);
  if (lookahead >= 0 && (newlines < 0 || newlines > lookahead)) return false;
  return alternatives.every((alternative) => SAFE.has(alternative));
}

/** The pattern cut at the bars that stand in no bracket. */
function alternativesOf(pattern: string): string[] {
  const alternatives = [""];
  let depth = 0;
  for (const [part] of pattern.matchAll(/\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]|[\s\S]/g)) {
    if (part === "(") depth++;
    else if (part === ")") depth--;
    if (part === "|" && depth === 0) alternatives.push("");
    else alternatives[alternatives.length - 1] += part;
  }
  return alternatives;
}

const CUT = /\n(?=[A-Za-z0-9])/g;

/** The text in parts of `length` characters or more, cut at the first place from there on. */
export function cutAtLines(text: string, length: number): string[] {
  const parts: string[] = [];
  let start = 0;
  for (;;) {
    CUT.lastIndex = start + length - 1;
    if (CUT.lastIndex >= text.length || CUT.exec(text) === null) break;
    parts.push(text.slice(start, CUT.lastIndex));
    start = CUT.lastIndex;
  }
  parts.push(text.slice(start));
  return parts;
}
