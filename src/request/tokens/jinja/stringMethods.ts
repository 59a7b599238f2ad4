import { BoundArguments } from "./callArguments.ts";
import { capitalize, lstrip, PYTHON_SPACE, rsplit, rstrip, split, splitLines, strip, title } from "./pythonText.ts";
import { failed, unsupported } from "./templateError.ts";
import { textOf } from "./toText.ts";
import { Callable, codePointLength, iterate, Tuple, typeName, type Value } from "./values.ts";

type Method = (text: string, args: BoundArguments) => Value;

const METHODS: ReadonlyMap<string, readonly [parameters: readonly string[], method: Method]> = new Map<
  string,
  readonly [readonly string[], Method]
>([
  ["upper", [[], (text) => text.toUpperCase()]],
  ["lower", [[], (text) => text.toLowerCase()]],
  ["capitalize", [[], capitalize]],
  ["title", [[], title]],
  ["strip", [["chars"], (text, args) => strip(text, args.textOrNull("chars"))]],
  ["lstrip", [["chars"], (text, args) => lstrip(text, args.textOrNull("chars"))]],
  ["rstrip", [["chars"], (text, args) => rstrip(text, args.textOrNull("chars"))]],
  ["split", [["sep", "maxsplit"], (text, args) => split(text, separator(args), args.integer("maxsplit", -1))]],
  ["rsplit", [["sep", "maxsplit"], (text, args) => rsplit(text, separator(args), args.integer("maxsplit", -1))]],
  ["splitlines", [["keepends"], (text, args) => (args.flag("keepends") ? keptLines() : splitLines(text))]],
  ["partition", [["sep"], (text, args) => partition(text, args.required("sep"))]],
  ["rpartition", [["sep"], (text, args) => rpartition(text, args.required("sep"))]],
  [
    "startswith",
    [["prefix", "start", "end"], (text, args) => someOf(args.get("prefix"), (prefix) => text.startsWith(prefix))],
  ],
  [
    "endswith",
    [["suffix", "start", "end"], (text, args) => someOf(args.get("suffix"), (suffix) => text.endsWith(suffix))],
  ],
  ["removeprefix", [["prefix"], (text, args) => removePrefix(text, args.required("prefix"))]],
  ["removesuffix", [["suffix"], (text, args) => removeSuffix(text, args.required("suffix"))]],
  ["replace", [["old", "new", "count"], (text, args) => replaced(text, args)]],
  ["find", [["sub", "start", "end"], (text, args) => codePointIndex(text, text.indexOf(args.required("sub")))]],
  ["rfind", [["sub", "start", "end"], (text, args) => codePointIndex(text, text.lastIndexOf(args.required("sub")))]],
  ["index", [["sub", "start", "end"], (text, args) => found(codePointIndex(text, text.indexOf(args.required("sub"))))]],
  ["count", [["sub", "start", "end"], (text, args) => occurrences(text, args.required("sub"))]],
  ["join", [["items"], (text, args) => joined(text, args.get("items"))]],
  ["isdigit", [[], (text) => /^[\p{Nd}\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089]+$/u.test(text)]],
  ["isalpha", [[], (text) => /^\p{L}+$/u.test(text)]],
  ["isalnum", [[], (text) => /^[\p{L}\p{N}]+$/u.test(text)]],
  ["isspace", [[], (text) => text !== "" && Array.from(text).every((character) => PYTHON_SPACE.test(character))]],
  ["isupper", [[], isUpper]],
  ["islower", [[], isLower]],
]);

/** The method of a str, bound; undefined if str has no such attribute. @throws {TemplateError} if it is not built here */
export function stringMethod(text: string, name: string): Callable | undefined {
  const method = METHODS.get(name);
  if (method !== undefined) {
    const [parameters, run] = method;
    return new Callable(name, (args) => {
      const bound = new BoundArguments(name, parameters, args);
      if (bound.has("start")) throw unsupported(`str.${name} with a start`);
      return run(text, bound);
    });
  }
  if (OTHER_METHODS.has(name)) throw unsupported(`str.${name}`);
  return undefined;
}

/** What else Python's str has: an attribute all the same, so no undefined. */
const OTHER_METHODS: ReadonlySet<string> = new Set([
  ..."casefold center encode expandtabs format format_map isascii isdecimal isidentifier isnumeric".split(" "),
  ..."isprintable istitle ljust maketrans rindex rjust swapcase translate zfill".split(" "),
]);

export function isLower(text: string): boolean {
  return text === text.toLowerCase() && text !== text.toUpperCase();
}

export function isUpper(text: string): boolean {
  return text === text.toUpperCase() && text !== text.toLowerCase();
}

/** str.replace(): at most `count` of them, -1: all. */
export function replaceText(text: string, from: string, to: string, count: number): string {
  if (count < 0 && from !== "") return text.replaceAll(from, () => to);
  const parts = from === "" ? ["", ...Array.from(text), ""] : text.split(from);
  const cuts = count < 0 ? parts.length - 1 : Math.min(count, parts.length - 1);
  return (
    parts.slice(0, cuts + 1).join(to) +
    parts
      .slice(cuts + 1)
      .map((part) => from + part)
      .join("")
  );
}

function separator(args: BoundArguments): string | null {
  const text = args.textOrNull("sep");
  if (text === "") throw failed("empty separator");
  return text;
}

function keptLines(): never {
  throw unsupported("str.splitlines(keepends=True)");
}

function partition(text: string, sep: string): Tuple {
  const at = text.indexOf(sep);
  return new Tuple(at < 0 ? [text, "", ""] : [text.slice(0, at), sep, text.slice(at + sep.length)]);
}

function rpartition(text: string, sep: string): Tuple {
  const at = text.lastIndexOf(sep);
  return new Tuple(at < 0 ? ["", "", text] : [text.slice(0, at), sep, text.slice(at + sep.length)]);
}

function someOf(wanted: Value, test: (text: string) => boolean): boolean {
  const all = wanted instanceof Tuple ? wanted.items : [wanted];
  return all.some((one) => {
    if (typeof one !== "string") throw failed(`a str or a tuple of str was expected, not ${typeName(one)}`);
    return test(one);
  });
}

function removePrefix(text: string, prefix: string): string {
  return text.startsWith(prefix) ? text.slice(prefix.length) : text;
}

function removeSuffix(text: string, suffix: string): string {
  return suffix !== "" && text.endsWith(suffix) ? text.slice(0, -suffix.length) : text;
}

function replaced(text: string, args: BoundArguments): string {
  return replaceText(text, args.required("old"), args.required("new"), args.integer("count", -1));
}

function codePointIndex(text: string, at: number): number {
  return at < 0 ? -1 : codePointLength(text.slice(0, at));
}

function found(at: number): number {
  if (at < 0) throw failed("substring not found");
  return at;
}

function occurrences(text: string, sub: string): number {
  return sub === "" ? codePointLength(text) + 1 : text.split(sub).length - 1;
}

function joined(glue: string, items: Value): string {
  return iterate(items)
    .map((item) => {
      if (typeof item !== "string") throw failed(`sequence item: expected str instance, ${typeName(item)} found`);
      return textOf(item);
    })
    .join(glue);
}
