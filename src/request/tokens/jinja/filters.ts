import { attributeOf, dictItems, itemOf } from "./attributes.ts";
import { BoundArguments } from "./callArguments.ts";
import { capitalize, splitLines, strip } from "./pythonText.ts";
import { replaceText } from "./stringMethods.ts";
import { failed, unsupported } from "./templateError.ts";
import { runTest } from "./tests.ts";
import { jsonOf, textOf } from "./toText.ts";
import {
  asNumber,
  type CallArguments,
  compare,
  equal,
  Generator,
  isInteger,
  iterate,
  lengthOf,
  PyFloat,
  Tuple,
  truthy,
  typeName,
  type Value,
} from "./values.ts";

type Filter = (value: Value, args: BoundArguments) => Value;
/** Filters whose arguments are the name and the arguments of another filter or test. */
type OpenFilter = (value: Value, args: CallArguments) => Value;

const FILTERS: ReadonlyMap<string, readonly [parameters: readonly string[], filter: Filter]> = new Map<
  string,
  readonly [readonly string[], Filter]
>([
  ["abs", [[], absolute]],
  ["attr", [["name"], (value, args) => attributeOf(value, args.required("name"))]],
  ["capitalize", [[], (value) => capitalize(textOf(value))]],
  ["count", [[], lengthOf]],
  ["d", [["default_value", "boolean"], defaulted]],
  ["default", [["default_value", "boolean"], defaulted]],
  ["dictsort", [["case_sensitive", "by", "reverse"], dictSorted]],
  ["first", [[], (value) => (value instanceof Generator ? value.takeFirst() : iterate(value)[0])]],
  ["float", [["default"], toFloat]],
  ["indent", [["width", "first", "blank"], indented]],
  ["int", [["default", "base"], toInteger]],
  ["items", [[], itemsOf]],
  ["join", [["d", "attribute"], joined]],
  ["last", [[], (value) => iterate(value).at(-1)]],
  ["length", [[], lengthOf]],
  ["list", [[], (value) => [...iterate(value)]]],
  ["lower", [[], (value) => textOf(value).toLowerCase()]],
  ["max", [["case_sensitive", "attribute"], (value, args) => extreme(value, args, 1)]],
  ["min", [["case_sensitive", "attribute"], (value, args) => extreme(value, args, -1)]],
  ["replace", [["old", "new", "count"], replaced]],
  ["reverse", [[], (value) => (typeof value === "string" ? Array.from(value).reverse().join("") : reversed(value))]],
  ["round", [["precision", "method"], rounded]],
  ["safe", [[], textOf]],
  ["sort", [["reverse", "case_sensitive", "attribute"], sorted]],
  ["string", [[], textOf]],
  ["sum", [["attribute", "start"], summed]],
  ["title", [[], (value) => titled(textOf(value))]],
  ["tojson", [["ensure_ascii", "indent", "separators", "sort_keys"], toJson]],
  ["trim", [["chars"], (value, args) => strip(textOf(value), args.textOrNull("chars"))]],
  ["unique", [["case_sensitive", "attribute"], unique]],
  ["upper", [[], (value) => textOf(value).toUpperCase()]],
  ["wordcount", [[], (value) => (textOf(value).match(/[\p{L}\p{N}_]+/gu) ?? []).length]],
]);

const OPEN_FILTERS: ReadonlyMap<string, OpenFilter> = new Map<string, OpenFilter>([
  ["map", mapped],
  ["select", (value, args) => selected(value, args, true)],
  ["reject", (value, args) => selected(value, args, false)],
  ["selectattr", (value, args) => selectedByAttribute(value, args, true)],
  ["rejectattr", (value, args) => selectedByAttribute(value, args, false)],
]);

/** Applies a filter. @throws {TemplateError} */
export function runFilter(name: string, value: Value, args: CallArguments): Value {
  const filter = FILTERS.get(name);
  if (filter !== undefined) return filter[1](value, new BoundArguments(name, filter[0], args));
  const open = OPEN_FILTERS.get(name);
  if (open === undefined) throw unsupported(`the filter '${name}'`);
  return open(value, args);
}

function absolute(value: Value): Value {
  const number = asNumber(value);
  if (number === null) throw failed(`bad operand type for abs(): '${typeName(value)}'`);
  return value instanceof PyFloat ? new PyFloat(Math.abs(number)) : Math.abs(number);
}

function defaulted(value: Value, args: BoundArguments): Value {
  const otherwise = args.has("default_value") ? args.get("default_value") : "";
  return value === undefined || (args.flag("boolean") && !truthy(value)) ? otherwise : value;
}

function itemsOf(value: Value): Value {
  if (value === undefined) return new Generator([]);
  if (!(value instanceof Map)) throw failed("Can only get item pairs from a mapping.");
  return new Generator(dictItems(value));
}

/** `a.b.0`: attributes and items one after another. */
function byPath(path: Value): (item: Value) => Value {
  if (isInteger(path)) return (item) => itemOf(item, path);
  if (typeof path !== "string") throw failed("an attribute's name was expected");
  const steps = path.split(".").map((step) => (/^\d+$/.test(step) ? Number(step) : step));
  return (item) => steps.reduce<Value>((sofar, step) => itemOf(sofar, step), item);
}

function foldCase(value: Value): Value {
  return typeof value === "string" ? value.toLowerCase() : value;
}

/** What is compared of an item: its attribute if one is named, without regard to case unless asked. */
function keyOf(args: BoundArguments): (item: Value) => Value {
  const pick =
    args.has("attribute") && args.get("attribute") !== null ? byPath(args.get("attribute")) : (item: Value) => item;
  return args.flag("case_sensitive") ? pick : (item) => foldCase(pick(item));
}

function sortedBy(items: readonly Value[], key: (item: Value) => Value, reverse: boolean): Value[] {
  const keyed = items.map((item) => ({ item, key: key(item) }));
  // Reversed like Python's: equal items keep their order.
  keyed.sort((a, b) => (reverse ? compare(b.key, a.key) : compare(a.key, b.key)));
  return keyed.map(({ item }) => item);
}

function sorted(value: Value, args: BoundArguments): Value {
  const path = args.get("attribute");
  if (typeof path === "string" && path.includes(",")) throw unsupported("sorting by several attributes");
  return sortedBy(iterate(value), keyOf(args), args.flag("reverse"));
}

function dictSorted(value: Value, args: BoundArguments): Value {
  if (!(value instanceof Map)) throw failed("dictsort needs a mapping");
  const by = args.text("by", "key");
  if (by !== "key" && by !== "value") throw failed("You can only sort by either 'key' or 'value'");
  const at = by === "key" ? 0 : 1;
  const fold = args.flag("case_sensitive") ? (item: Value) => item : foldCase;
  return sortedBy(dictItems(value), (pair) => fold((pair as Tuple).items[at]), args.flag("reverse"));
}

function unique(value: Value, args: BoundArguments): Value {
  const key = keyOf(args);
  const seen: Value[] = [];
  const kept = iterate(value).filter((item) => {
    const itemKey = key(item);
    if (seen.some((other) => equal(other, itemKey))) return false;
    seen.push(itemKey);
    return true;
  });
  return new Generator(kept);
}

function extreme(value: Value, args: BoundArguments, sign: 1 | -1): Value {
  const key = keyOf(args);
  const [first, ...rest] = iterate(value);
  return rest.reduce((best, item) => (compare(key(item), key(best)) * sign > 0 ? item : best), first);
}

function summed(value: Value, args: BoundArguments): Value {
  const pick =
    args.has("attribute") && args.get("attribute") !== null ? byPath(args.get("attribute")) : (item: Value) => item;
  let float = false;
  let sum = 0;
  const add = (item: Value): void => {
    const number = asNumber(item);
    if (number === null) throw unsupported(`the sum of ${typeName(item)}`);
    float ||= item instanceof PyFloat;
    sum += number;
  };
  if (args.has("start")) add(args.get("start"));
  for (const item of iterate(value)) add(pick(item));
  return float ? new PyFloat(sum) : sum;
}

function reversed(value: Value): Value {
  return new Generator([...iterate(value)].reverse());
}

function joined(value: Value, args: BoundArguments): Value {
  const pick =
    args.has("attribute") && args.get("attribute") !== null ? byPath(args.get("attribute")) : (item: Value) => item;
  return iterate(value)
    .map((item) => textOf(pick(item)))
    .join(args.has("d") ? textOf(args.get("d")) : "");
}

function replaced(value: Value, args: BoundArguments): Value {
  if (!args.has("old") || !args.has("new")) throw failed("replace needs what and by what");
  return replaceText(textOf(value), textOf(args.get("old")), textOf(args.get("new")), args.integer("count", -1));
}

function indented(value: Value, args: BoundArguments): Value {
  const width = args.get("width");
  const indentation = typeof width === "string" ? width : " ".repeat(args.integer("width", 4));
  const [first = "", ...rest] = splitLines(`${textOf(value)}\n`);
  const blank = args.flag("blank");
  const lines = rest.map((line) => (blank || line !== "" ? indentation + line : line));
  return (args.flag("first") ? indentation : "") + [first, ...lines].join("\n");
}

function titled(text: string): string {
  return text
    .split(/([-\s({[<]+)/u)
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1).toLowerCase())
    .join("");
}

function toInteger(value: Value, args: BoundArguments): Value {
  const otherwise = args.has("default") ? args.get("default") : 0;
  if (args.integer("base", 10) !== 10) throw unsupported("int with another base");
  if (typeof value === "string") {
    const text = strip(value);
    if (/^[+-]?\d+(_\d+)*$/.test(text)) return safeInteger(Number(text.replaceAll("_", "")));
    const float = Number(text);
    return text === "" || !Number.isFinite(float) ? otherwise : safeInteger(Math.trunc(float));
  }
  if (typeof value === "bigint") return value;
  const number = asNumber(value);
  return number === null || !Number.isFinite(number) ? otherwise : safeInteger(Math.trunc(number));
}

function safeInteger(value: number): number {
  if (!Number.isSafeInteger(value)) throw unsupported("integers beyond 2^53");
  return value + 0;
}

function toFloat(value: Value, args: BoundArguments): Value {
  const otherwise = args.has("default") ? args.get("default") : new PyFloat(0);
  if (typeof value === "string") {
    const text = strip(value);
    const number = Number(text);
    return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? new PyFloat(number) : otherwise;
  }
  const number = asNumber(value);
  return number === null ? otherwise : new PyFloat(number);
}

function rounded(value: Value, args: BoundArguments): Value {
  const number = asNumber(value);
  if (number === null) throw failed(`type ${typeName(value)} doesn't define __round__ method`);
  const scale = 10 ** args.integer("precision", 0);
  const method = args.text("method", "common");
  if (method === "ceil") return new PyFloat(Math.ceil(number * scale) / scale);
  if (method === "floor") return new PyFloat(Math.floor(number * scale) / scale);
  // Python rounds halves of the decimal text to even, which takes more than multiplying.
  if (method !== "common" || scale !== 1) throw unsupported("round with a precision");
  const floor = Math.floor(number);
  const up = number - floor > 0.5 || (number - floor === 0.5 && floor % 2 !== 0);
  const whole = up ? floor + 1 : floor;
  return value instanceof PyFloat ? new PyFloat(whole) : whole;
}

function toJson(value: Value, args: BoundArguments): Value {
  const indent = args.get("indent");
  const oneLine = indent === null || indent === undefined;
  const separators = args.get("separators");
  const given = separators instanceof Tuple || Array.isArray(separators) ? iterate(separators) : null;
  const [itemSeparator, keySeparator] = given ?? [oneLine ? ", " : ",", ": "];
  if (typeof itemSeparator !== "string" || typeof keySeparator !== "string") throw failed("separators must be two str");
  return jsonOf(value, {
    ensureAscii: args.flag("ensure_ascii"),
    indent: oneLine ? null : typeof indent === "string" ? indent : " ".repeat(args.integer("indent", 0)),
    itemSeparator,
    keySeparator,
    sortKeys: args.flag("sort_keys"),
  });
}

/** These filters take anything that is false for empty. */
function itemsIfAny(value: Value): readonly Value[] {
  return truthy(value) ? iterate(value) : [];
}

function mapped(value: Value, { positional, named }: CallArguments): Value {
  const [name, ...rest] = positional;
  if (positional.length === 0 && named.has("attribute")) {
    const pick = byPath(named.get("attribute"));
    const otherwise = named.get("default");
    return new Generator(
      itemsIfAny(value).map((item) => {
        const picked = pick(item);
        return picked === undefined ? otherwise : picked;
      }),
    );
  }
  if (typeof name !== "string") throw failed("map requires a filter argument");
  return new Generator(itemsIfAny(value).map((item) => runFilter(name, item, { positional: rest, named })));
}

function selected(value: Value, { positional, named }: CallArguments, wanted: boolean): Value {
  const [name, ...rest] = positional;
  const test = (item: Value): boolean =>
    name === undefined ? truthy(item) : runTest(textOf(name), item, { positional: rest, named });
  return new Generator(itemsIfAny(value).filter((item) => test(item) === wanted));
}

function selectedByAttribute(value: Value, { positional, named }: CallArguments, wanted: boolean): Value {
  const [path, name, ...rest] = positional;
  if (path === undefined) throw failed("Missing parameter for attribute name");
  const pick = byPath(path);
  const test = (item: Value): boolean =>
    name === undefined ? truthy(pick(item)) : runTest(textOf(name), pick(item), { positional: rest, named });
  return new Generator(itemsIfAny(value).filter((item) => test(item) === wanted));
}
