import { failed, unsupported } from "./templateError.ts";

/*
 * Python's values as a template sees them. None is null, an undefined variable undefined, an int a number (a bigint if
 * it needs one), a str a string, a list an array, a dict a Map in the order of insertion.
 */

/** Python's float, which is told from an int: 1.0 is printed with its point. */
export class PyFloat {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

export class Tuple {
  readonly items: readonly Value[];

  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

/** What `map`, `select` and their like give: true whatever is in it, without length, and empty after one reading. */
export class Generator {
  #items: readonly Value[];

  constructor(items: readonly Value[]) {
    this.#items = items;
  }

  consume(): readonly Value[] {
    const items = this.#items;
    this.#items = [];
    return items;
  }

  takeFirst(): Value {
    const [first, ...rest] = this.#items;
    this.#items = rest;
    return first;
  }
}

/** What a dict's `items()`, `keys()` and `values()` give: no list, but it has a length. */
export class DictView {
  readonly items: readonly Value[];

  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

/** `namespace()`: the only thing that a template can change. */
export class Namespace {
  readonly attributes: Map<string, Value>;

  constructor(attributes: Map<string, Value>) {
    this.attributes = attributes;
  }
}

export interface CallArguments {
  readonly positional: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
}

export class Callable {
  readonly name: string;
  readonly call: (args: CallArguments) => Value;

  constructor(name: string, call: (args: CallArguments) => Value) {
    this.name = name;
    this.call = call;
  }
}

/** An object of the interpreter with attributes of its own: `loop`. */
export interface AttributeObject {
  readonly kind: "loop";
  attribute(name: string): Value;
}

export type Dict = Map<Value, Value>;

export type Value =
  | undefined
  | null
  | boolean
  | number
  | bigint
  | string
  | PyFloat
  | Tuple
  | DictView
  | Generator
  | Namespace
  | Callable
  | AttributeObject
  | Value[]
  | Dict;

export function isAttributeObject(value: Value): value is AttributeObject {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "loop";
}

export function typeName(value: Value): string {
  if (value === undefined) return "Undefined";
  if (value === null) return "NoneType";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "number" || typeof value === "bigint") return "int";
  if (typeof value === "string") return "str";
  if (value instanceof PyFloat) return "float";
  if (value instanceof Tuple) return "tuple";
  if (value instanceof DictView) return "dict view";
  if (value instanceof Generator) return "generator";
  if (value instanceof Namespace) return "Namespace";
  if (value instanceof Callable) return "function";
  if (Array.isArray(value)) return "list";
  return value instanceof Map ? "dict" : "LoopContext";
}

export function truthy(value: Value): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Map) return value.size > 0;
  if (value instanceof Tuple || value instanceof DictView) return value.items.length > 0;
  if (value instanceof PyFloat) return value.value !== 0;
  return Boolean(value);
}

export function isInteger(value: Value): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

/** A number as arithmetic takes it; null for what is none. Booleans count as 0 and 1, as in Python. */
export function asNumber(value: Value): number | null {
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value instanceof PyFloat) return value.value;
  if (typeof value === "bigint") throw unsupported("arithmetic with integers beyond 2^53");
  return null;
}

/** The items that a loop over the value meets. */
export function iterate(value: Value): readonly Value[] {
  if (Array.isArray(value)) return value;
  if (typeof value === "string") return Array.from(value);
  if (value instanceof Map) return [...value.keys()];
  if (value instanceof Tuple || value instanceof DictView) return value.items;
  if (value instanceof Generator) return value.consume();
  if (value === undefined) return [];
  throw failed(`'${typeName(value)}' object is not iterable`);
}

export function lengthOf(value: Value): number {
  if (typeof value === "string") return codePointLength(value);
  if (Array.isArray(value)) return value.length;
  if (value instanceof Map) return value.size;
  if (value instanceof Tuple || value instanceof DictView) return value.items.length;
  if (value === undefined) return 0;
  throw failed(`object of type '${typeName(value)}' has no len()`);
}

const SURROGATE = /[\ud800-\udfff]/;

export function codePointLength(text: string): number {
  if (!SURROGATE.test(text)) return text.length;
  let length = 0;
  for (const _ of text) length++;
  return length;
}

/** The characters of a text; the text itself where one unit is one character. */
export function characters(text: string): string | readonly string[] {
  return SURROGATE.test(text) ? Array.from(text) : text;
}

/** Python's `==`. */
export function equal(left: Value, right: Value): boolean {
  if (left === right) return true;
  if (typeof left === "bigint" || typeof right === "bigint") return false;
  const a = asNumber(left);
  if (a !== null) return a === asNumber(right);
  if (Array.isArray(left) && Array.isArray(right)) return equalItems(left, right);
  if (left instanceof Tuple && right instanceof Tuple) return equalItems(left.items, right.items);
  if (left instanceof Map && right instanceof Map) {
    if (left.size !== right.size) return false;
    for (const [key, value] of left) if (!right.has(key) || !equal(value, right.get(key))) return false;
    return true;
  }
  return false;
}

function equalItems(left: readonly Value[], right: readonly Value[]): boolean {
  return left.length === right.length && left.every((item, at) => equal(item, right[at]));
}

/** Negative, zero or positive as `left` is below, equal to or above `right`. @throws {TemplateError} if neither */
export function compare(left: Value, right: Value): number {
  const a = asNumber(left);
  const b = asNumber(right);
  if (a !== null && b !== null) return a - b;
  if (typeof left === "string" && typeof right === "string") return compareText(left, right);
  const leftItems = Array.isArray(left) ? left : left instanceof Tuple ? left.items : null;
  const rightItems = Array.isArray(right) ? right : right instanceof Tuple ? right.items : null;
  if (leftItems !== null && rightItems !== null && Array.isArray(left) === Array.isArray(right)) {
    for (let at = 0; at < Math.min(leftItems.length, rightItems.length); at++)
      if (!equal(leftItems[at], rightItems[at])) return compare(leftItems[at], rightItems[at]);
    return leftItems.length - rightItems.length;
  }
  throw failed(`'<' not supported between '${typeName(left)}' and '${typeName(right)}'`);
}

/** By code points: UTF-16 would put astral characters before the last of the basic plane. */
function compareText(left: string, right: string): number {
  if (!SURROGATE.test(left) && !SURROGATE.test(right)) return left < right ? -1 : left > right ? 1 : 0;
  return Buffer.compare(Buffer.from(left, "utf8"), Buffer.from(right, "utf8"));
}

/** Python's `needle in haystack`. */
export function contains(haystack: Value, needle: Value): boolean {
  if (typeof haystack === "string") {
    if (typeof needle !== "string") throw failed(`'in <string>' requires string, not ${typeName(needle)}`);
    return haystack.includes(needle);
  }
  if (haystack instanceof Map) return haystack.has(needle);
  return iterate(haystack).some((item) => equal(item, needle));
}
