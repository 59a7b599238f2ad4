import { type Dict, type Value } from "../jinja/values.ts";
import { TokenFallback } from "../tokenFallback.ts";

/** What the engine refuses too. */
export function malformed(message: string): TokenFallback {
  return new TokenFallback("malformed_prompt", message);
}

export function asDict(value: Value, what: string): Dict {
  if (!(value instanceof Map)) throw malformed(`${what} is not an object`);
  return value;
}

/** A member that is a list; null where it is missing or null. */
export function listOf(dict: Dict, key: string): readonly Value[] | null {
  const value = dict.get(key) ?? null;
  if (value === null) return null;
  if (!Array.isArray(value)) throw malformed(`${key} is not a list`);
  return value;
}

/** A member that is a str; null where it is missing or null. */
export function textOrNull(dict: Dict, key: string): string | null {
  const value = dict.get(key) ?? null;
  if (value === null) return null;
  if (typeof value !== "string") throw malformed(`${key} is not a string`);
  return value;
}

/** A flag as pydantic reads it from JSON's own booleans; anything else is left for the engine to judge. */
export function flagOf(dict: Dict, key: string, otherwise: boolean): boolean {
  const value = dict.get(key) ?? null;
  if (value === null) return otherwise;
  if (typeof value !== "boolean") throw malformed(`${key} is not a boolean`);
  return value;
}

/** A dict with these members, without those that are undefined. */
export function dictOf(members: readonly (readonly [key: string, value: Value])[]): Dict {
  const dict: Dict = new Map();
  for (const [key, value] of members) if (value !== undefined) dict.set(key, value);
  return dict;
}

/** A copy whose members begin with `keys`, as pydantic orders what it validated; the others follow in their order. */
export function ordered(dict: Dict, keys: readonly string[]): Dict {
  const copy: Dict = new Map();
  for (const key of keys) if (dict.has(key)) copy.set(key, dict.get(key));
  for (const [key, value] of dict) copy.set(key, value);
  return copy;
}
