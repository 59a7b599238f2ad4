import type { CompareOperator, MathOperator } from "./ast.ts";
import { failed, unsupported } from "./templateError.ts";
import { asNumber, compare, contains, equal, PyFloat, Tuple, typeName, type Value } from "./values.ts";

export function compareWith(operator: CompareOperator, left: Value, right: Value): boolean {
  switch (operator) {
    case "==":
      return equal(left, right);
    case "!=":
      return !equal(left, right);
    case "<":
      return compare(left, right) < 0;
    case "<=":
      return compare(left, right) <= 0;
    case ">":
      return compare(left, right) > 0;
    case ">=":
      return compare(left, right) >= 0;
    case "in":
      return contains(right, left);
    case "not in":
      break;
  }
  return !contains(right, left);
}

/** Longest text or list that `*` may make. */
const MAX_REPEATED = 1_000_000;

export function calculate(operator: MathOperator, left: Value, right: Value): Value {
  if (operator === "+") {
    if (typeof left === "string" && typeof right === "string") return left + right;
    if (Array.isArray(left) && Array.isArray(right)) return [...left, ...right];
    if (left instanceof Tuple && right instanceof Tuple) return new Tuple([...left.items, ...right.items]);
  }
  if (operator === "*") {
    const repeated = repeat(left, right) ?? repeat(right, left);
    if (repeated !== null) return repeated;
  }
  if (operator === "%" && typeof left === "string") throw unsupported("formatting with %");
  const a = asNumber(left);
  const b = asNumber(right);
  if (a === null || b === null)
    throw failed(`unsupported operand types for ${operator}: '${typeName(left)}' and '${typeName(right)}'`);
  const result = arithmetic(operator, a, b);
  const float = left instanceof PyFloat || right instanceof PyFloat || operator === "/" || (operator === "**" && b < 0);
  if (float) return new PyFloat(result);
  if (!Number.isSafeInteger(result)) throw unsupported("integers beyond 2^53");
  // Python's int has no negative zero.
  return result + 0;
}

/** A text, list or tuple as often as `count` says; null if these are not of that kind. */
function repeat(sequence: Value, count: Value): Value {
  const length = typeof sequence === "string" || Array.isArray(sequence) ? sequence.length : null;
  if (length === null || count instanceof PyFloat) return null;
  const times = Math.max(0, asNumber(count) ?? Number.NaN);
  if (Number.isNaN(times)) return null;
  if (length * times > MAX_REPEATED) throw unsupported("such a long repetition");
  return typeof sequence === "string"
    ? sequence.repeat(times)
    : Array.from({ length: times }, () => sequence as Value[]).flat();
}

function arithmetic(operator: MathOperator, a: number, b: number): number {
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "**":
      return a ** b;
    case "/":
    case "//":
    case "%":
      break;
  }
  if (b === 0) throw failed("division by zero");
  if (operator === "/") return a / b;
  return operator === "//" ? Math.floor(a / b) : modulo(a, b);
}

/** Its sign is the divisor's. */
function modulo(a: number, b: number): number {
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
}

export function negate(value: Value): Value {
  const number = asNumber(value);
  if (number === null) throw failed(`bad operand type for unary -: '${typeName(value)}'`);
  return value instanceof PyFloat ? new PyFloat(-number) : 0 - number;
}
