import { floatText, textRepr } from "./pythonText.ts";
import { failed, unsupported } from "./templateError.ts";
import { PyFloat, Tuple, typeName, type Value } from "./values.ts";

/** Python's str(): what `{{ value }}` prints. */
export function textOf(value: Value): string {
  if (typeof value === "string") return value;
  return value === undefined ? "" : reprOf(value);
}

function reprOf(value: Value): string {
  if (value === null) return "None";
  if (value === undefined) return "Undefined";
  if (typeof value === "string") return textRepr(value);
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (value instanceof PyFloat) return floatText(value.value);
  if (Array.isArray(value)) return `[${value.map(reprOf).join(", ")}]`;
  if (value instanceof Tuple) return `(${value.items.map(reprOf).join(", ")}${value.items.length === 1 ? "," : ""})`;
  if (value instanceof Map) return `{${[...value].map(([key, item]) => `${reprOf(key)}: ${reprOf(item)}`).join(", ")}}`;
  throw unsupported(`printing a ${typeName(value)}`);
}

export interface JsonOptions {
  readonly ensureAscii: boolean;
  /** Spaces per level, or the text itself; null: on one line. */
  readonly indent: string | null;
  readonly itemSeparator: string;
  readonly keySeparator: string;
  readonly sortKeys: boolean;
}

/** json.dumps as transformers' `tojson` calls it. */
export function jsonOf(value: Value, options: JsonOptions, level = 0): string {
  if (value === null) return "null";
  if (typeof value === "string") return jsonText(value, options.ensureAscii);
  if (typeof value === "boolean" || typeof value === "number" || typeof value === "bigint") return String(value);
  if (value instanceof PyFloat) return jsonFloat(value.value);
  if (Array.isArray(value) || value instanceof Tuple) {
    const items = Array.isArray(value) ? value : value.items;
    return wrapped(
      "[",
      items.map((item) => jsonOf(item, options, level + 1)),
      "]",
      options,
      level,
    );
  }
  if (value instanceof Map) {
    const pairs = [...value].map(([key, item]) => [jsonKey(key), item] as const);
    if (options.sortKeys) pairs.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const members = pairs.map(
      ([key, item]) => jsonText(key, options.ensureAscii) + options.keySeparator + jsonOf(item, options, level + 1),
    );
    return wrapped("{", members, "}", options, level);
  }
  throw failed(`Object of type ${typeName(value)} is not JSON serializable`);
}

function wrapped(open: string, items: readonly string[], close: string, options: JsonOptions, level: number): string {
  const { indent, itemSeparator } = options;
  if (items.length === 0) return open + close;
  if (indent === null) return open + items.join(itemSeparator) + close;
  const line = `\n${indent.repeat(level + 1)}`;
  return `${open}${line}${items.join(itemSeparator + line)}\n${indent.repeat(level)}${close}`;
}

function jsonText(text: string, ensureAscii: boolean): string {
  const json = JSON.stringify(text);
  if (!ensureAscii) return json;
  return json.replaceAll(/[\x7f-\uffff]/g, (unit) =>
    unit === "\x7f" ? unit : `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function jsonFloat(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity";
  return floatText(value);
}

function jsonKey(key: Value): string {
  if (typeof key === "string") return key;
  if (key === null) return "null";
  if (typeof key === "boolean" || typeof key === "number" || typeof key === "bigint") return String(key);
  if (key instanceof PyFloat) return jsonFloat(key.value);
  throw failed(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
}
