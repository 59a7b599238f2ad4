import { isLower, isUpper } from "./stringMethods.ts";
import { failed, unsupported } from "./templateError.ts";
import { textOf } from "./toText.ts";
import {
  asNumber,
  Callable,
  type CallArguments,
  compare,
  contains,
  DictView,
  equal,
  Generator,
  isInteger,
  PyFloat,
  Tuple,
  typeName,
  type Value,
} from "./values.ts";

type Test = (value: Value, argument: Value) => boolean;

const PLAIN: ReadonlyMap<string, Test> = new Map<string, Test>([
  ["boolean", (value) => typeof value === "boolean"],
  ["callable", (value) => value instanceof Callable || value === undefined],
  ["defined", (value) => value !== undefined],
  ["even", (value) => remainder(value, 2) === 0],
  ["false", (value) => value === false],
  ["float", (value) => value instanceof PyFloat],
  ["integer", isInteger],
  ["iterable", isIterable],
  ["lower", (value) => isLower(textOf(value))],
  ["mapping", (value) => value instanceof Map],
  ["none", (value) => value === null],
  ["number", (value) => isInteger(value) || typeof value === "boolean" || value instanceof PyFloat],
  ["odd", (value) => remainder(value, 2) === 1],
  ["sequence", (value) => isIterable(value) && !(value instanceof Generator || value instanceof DictView)],
  ["string", (value) => typeof value === "string"],
  ["true", (value) => value === true],
  ["undefined", (value) => value === undefined],
  ["upper", (value) => isUpper(textOf(value))],
]);

const WITH_ARGUMENT: ReadonlyMap<string, Test> = new Map<string, Test>([
  ["divisibleby", (value, by) => remainder(value, numberOf(by)) === 0],
  ["in", (value, all) => contains(all, value)],
  ["sameas", (value, other) => Object.is(value, other)],
  ...names(["eq", "equalto", "=="], equal),
  ...names(["ne", "!="], (value, other) => !equal(value, other)),
  ...names(["lt", "lessthan", "<"], (value, other) => compare(value, other) < 0),
  ...names(["le", "<="], (value, other) => compare(value, other) <= 0),
  ...names(["gt", "greaterthan", ">"], (value, other) => compare(value, other) > 0),
  ...names(["ge", ">="], (value, other) => compare(value, other) >= 0),
]);

/** Whether `value is name(args)`. @throws {TemplateError} */
export function runTest(name: string, value: Value, { positional, named }: CallArguments): boolean {
  const plain = PLAIN.get(name);
  if (plain !== undefined && positional.length + named.size === 0) return plain(value, undefined);
  const test = WITH_ARGUMENT.get(name);
  if (test === undefined && plain === undefined) throw unsupported(`the test '${name}'`);
  if (test === undefined || positional.length !== 1 || named.size > 0)
    throw failed(`wrong arguments for the test '${name}'`);
  return test(value, positional[0]);
}

function names(all: readonly string[], test: Test): [string, Test][] {
  return all.map((name) => [name, test]);
}

/** Python's `iter(value)` works: an undefined value counts as an empty list. */
function isIterable(value: Value): boolean {
  return (
    value === undefined ||
    typeof value === "string" ||
    Array.isArray(value) ||
    value instanceof Map ||
    value instanceof Tuple ||
    value instanceof DictView ||
    value instanceof Generator
  );
}

function numberOf(value: Value): number {
  const number = asNumber(value);
  if (number === null) throw failed(`a number was expected, not ${typeName(value)}`);
  return number;
}

/** Python's `%`: its sign is the divisor's. */
function remainder(value: Value, by: number): number {
  const rest = numberOf(value) % by;
  return rest !== 0 && rest < 0 !== by < 0 ? rest + by : rest;
}
