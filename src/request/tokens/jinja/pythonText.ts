/** What Python's str.isspace, `\s` and strip() take for white space; JavaScript's own set has other members. */
// oxlint-disable-next-line no-control-regex
export const PYTHON_SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

// oxlint-disable-next-line no-control-regex
const LINE_BREAK = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/;

/** Without the characters of `chars` at its end, white space if it is null. */
export function rstrip(text: string, chars: string | null = null): string {
  const strips = stripper(chars);
  let end = text.length;
  while (end > 0) {
    const size = end > 1 && isLowSurrogate(text.charCodeAt(end - 1)) ? 2 : 1;
    if (!strips(text.slice(end - size, end))) break;
    end -= size;
  }
  return text.slice(0, end);
}

export function lstrip(text: string, chars: string | null = null): string {
  const strips = stripper(chars);
  let start = 0;
  while (start < text.length) {
    const character = String.fromCodePoint(text.codePointAt(start)!);
    if (!strips(character)) break;
    start += character.length;
  }
  return text.slice(start);
}

export function strip(text: string, chars: string | null = null): string {
  return lstrip(rstrip(text, chars), chars);
}

function stripper(chars: string | null): (character: string) => boolean {
  if (chars === null) return (character) => PYTHON_SPACE.test(character);
  const set = new Set(chars);
  return (character) => set.has(character);
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** str.split(): at `separator`, or at runs of white space if it is null; at most `limit` cuts, -1: all. */
export function split(text: string, separator: string | null, limit: number): string[] {
  if (separator === null) return splitAtSpace(text, limit);
  const parts = text.split(separator);
  if (limit < 0 || parts.length <= limit + 1) return parts;
  return [...parts.slice(0, limit), parts.slice(limit).join(separator)];
}

function splitAtSpace(text: string, limit: number): string[] {
  const parts: string[] = [];
  let rest = lstrip(text);
  while (rest !== "") {
    if (limit >= 0 && parts.length === limit) {
      parts.push(rstrip(rest));
      break;
    }
    const end = rest.search(PYTHON_SPACE);
    parts.push(end < 0 ? rest : rest.slice(0, end));
    rest = end < 0 ? "" : lstrip(rest.slice(end));
  }
  return parts;
}

/** str.rsplit(), the same from the right. */
export function rsplit(text: string, separator: string | null, limit: number): string[] {
  if (limit < 0) return split(text, separator, -1);
  if (separator !== null) {
    const parts = text.split(separator);
    if (parts.length <= limit + 1) return parts;
    const first = parts.length - limit;
    return [parts.slice(0, first).join(separator), ...parts.slice(first)];
  }
  const parts: string[] = [];
  let rest = rstrip(text);
  while (rest !== "") {
    if (parts.length === limit) {
      parts.unshift(lstrip(rest));
      break;
    }
    let start = rest.length;
    while (start > 0 && !PYTHON_SPACE.test(rest[start - 1]!)) start--;
    parts.unshift(rest.slice(start));
    rest = rstrip(rest.slice(0, start));
  }
  return parts;
}

/** str.splitlines(). */
export function splitLines(text: string): string[] {
  const lines = text.split(LINE_BREAK);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

export function capitalize(text: string): string {
  const first = text === "" ? "" : String.fromCodePoint(text.codePointAt(0)!);
  return first.toUpperCase() + text.slice(first.length).toLowerCase();
}

/** str.title(): every run of letters begins with a capital. */
export function title(text: string): string {
  return text.replaceAll(/\p{L}+/gu, capitalize);
}

/** repr() of a float. JavaScript finds the same shortest digits, but writes them otherwise. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Object.is(value, -0)) return "-0.0";
  const [digits, power] = value.toExponential().split("e") as [string, string];
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 16) {
    const text = String(value);
    return text.includes(".") ? text : `${text}.0`;
  }
  return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

// Controls, format characters, private and unassigned ones, separators but the space.
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

/** repr() of a str. */
export function textRepr(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text
    .replaceAll("\\", "\\\\")
    .replaceAll(quote, `\\${quote}`)
    .replaceAll(UNPRINTABLE, (character) => {
      if (character === "\n") return "\\n";
      if (character === "\r") return "\\r";
      if (character === "\t") return "\\t";
      const code = character.codePointAt(0)!;
      if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
      return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
    });
  return quote + escaped + quote;
}
