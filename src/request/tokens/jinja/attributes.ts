import { BoundArguments } from "./callArguments.ts";
import { stringMethod } from "./stringMethods.ts";
import { failed, unsupported } from "./templateError.ts";
import {
  asNumber,
  Callable,
  characters,
  type Dict,
  DictView,
  equal,
  isAttributeObject,
  isInteger,
  Namespace,
  PyFloat,
  Tuple,
  typeName,
  type Value,
} from "./values.ts";

/** `object.name`: an attribute, else an item. */
export function attributeOf(object: Value, name: string): Value {
  refuseUndefined(object, name);
  const attribute = pythonAttribute(object, name);
  if (attribute !== undefined) return attribute;
  return object instanceof Map ? object.get(name) : undefined;
}

/** `object[key]`: an item, else an attribute. */
export function itemOf(object: Value, key: Value): Value {
  refuseUndefined(object, typeof key === "string" ? key : "item");
  if (object instanceof Map) {
    if (object.has(key)) return object.get(key);
  } else if (isInteger(key) || typeof key === "boolean") {
    const index = asNumber(key)!;
    if (Array.isArray(object)) return object.at(index);
    if (object instanceof Tuple) return object.items.at(index);
    if (typeof object === "string") return characters(object).at(index);
  }
  return typeof key === "string" ? pythonAttribute(object, key) : undefined;
}

/** `object[start:stop:step]`. */
export function sliceOf(object: Value, start: Value, stop: Value, step: Value): Value {
  refuseUndefined(object, "a slice");
  const bounds = [sliceBound(start), sliceBound(stop), sliceBound(step)] as const;
  if (typeof object === "string") {
    const text = characters(object);
    if (typeof text === "string" && (bounds[2] ?? 1) === 1) return text.slice(bounds[0] ?? 0, bounds[1] ?? undefined);
    return sliceItems(Array.from(text), ...bounds).join("");
  }
  if (Array.isArray(object)) return sliceItems(object, ...bounds);
  if (object instanceof Tuple) return new Tuple(sliceItems(object.items, ...bounds));
  throw failed(`'${typeName(object)}' object is not subscriptable`);
}

function refuseUndefined(object: Value, name: string): void {
  if (object === undefined) throw failed(`an undefined value has no '${name}'`);
}

function sliceBound(bound: Value): number | null {
  if (bound === null || bound === undefined) return null;
  if (!isInteger(bound) && typeof bound !== "boolean")
    throw failed(`slice indices must be integers, not ${typeName(bound)}`);
  return asNumber(bound);
}

function sliceItems<T>(items: readonly T[], start: number | null, stop: number | null, step: number | null): T[] {
  const by = step ?? 1;
  if (by === 1) return items.slice(start ?? 0, stop ?? undefined);
  if (by === 0) throw failed("slice step cannot be zero");
  const length = items.length;
  const clamp = (bound: number): number => {
    const at = bound < 0 ? bound + length : bound;
    return by > 0 ? Math.max(0, Math.min(length, at)) : Math.max(-1, Math.min(length - 1, at));
  };
  const from = start === null ? (by > 0 ? 0 : length - 1) : clamp(start);
  const to = stop === null ? (by > 0 ? length : -1) : clamp(stop);
  const picked: T[] = [];
  for (let at = from; by > 0 ? at < to : at > to; at += by) picked.push(items[at]!);
  return picked;
}

/** What getattr() finds; undefined: nothing. @throws {TemplateError} for what Python has and this has not */
function pythonAttribute(object: Value, name: string): Value {
  if (typeof object === "string") return stringMethod(object, name);
  if (object instanceof Map) return dictMethod(object, name);
  if (object instanceof Namespace) return object.attributes.get(name);
  if (isAttributeObject(object)) return object.attribute(name);
  if (Array.isArray(object) || object instanceof Tuple) return sequenceMethod(object, name);
  if (object instanceof PyFloat && name === "is_integer") throw unsupported("float.is_integer");
  if (object instanceof Callable && name === "name") return object.name;
  return undefined;
}

function dictMethod(dict: Dict, name: string): Callable | undefined {
  const method = (parameters: readonly string[], run: (args: BoundArguments) => Value): Callable =>
    new Callable(name, (args) => run(new BoundArguments(name, parameters, args)));
  switch (name) {
    case "get":
      return method(["key", "default"], (args) => {
        const key = args.get("key");
        return dict.has(key) ? dict.get(key) : args.has("default") ? args.get("default") : null;
      });
    case "items":
      return method([], () => new DictView(dictItems(dict)));
    case "keys":
      return method([], () => new DictView([...dict.keys()]));
    case "values":
      return method([], () => new DictView([...dict.values()]));
    case "copy":
      return method([], () => new Map(dict));
    case "clear":
    case "pop":
    case "popitem":
    case "setdefault":
    case "update":
      // The sandbox gives an undefined instead of a method that changes something, and calling it raises.
      return method([], () => {
        throw failed(`dict.${name} is not safe`);
      });
    case "fromkeys":
      throw unsupported("dict.fromkeys");
    default:
      return undefined;
  }
}

export function dictItems(dict: Dict): Value[] {
  return [...dict].map((pair) => new Tuple(pair));
}

function sequenceMethod(sequence: readonly Value[] | Tuple, name: string): Callable | undefined {
  const items = sequence instanceof Tuple ? sequence.items : sequence;
  switch (name) {
    case "index":
      return new Callable(name, (args) => {
        const value = new BoundArguments(name, ["value"], args).get("value");
        const at = items.findIndex((item) => equal(item, value));
        if (at < 0) throw failed("the value is not in the list");
        return at;
      });
    case "count":
      return new Callable(name, (args) => {
        const value = new BoundArguments(name, ["value"], args).get("value");
        return items.filter((item) => equal(item, value)).length;
      });
    case "copy":
      return sequence instanceof Tuple ? undefined : new Callable(name, () => [...items]);
    case "append":
    case "clear":
    case "extend":
    case "insert":
    case "pop":
    case "remove":
    case "reverse":
    case "sort":
      if (sequence instanceof Tuple) return undefined;
      return new Callable(name, () => {
        throw failed(`list.${name} is not safe`);
      });
    default:
      return undefined;
  }
}
