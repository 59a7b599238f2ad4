import { failed } from "./templateError.ts";
import { asNumber, type CallArguments, isInteger, truthy, typeName, type Value } from "./values.ts";

/**
 * Arguments of a call by the names of a Python signature. A parameter that was not given is `undefined`, which no caller
 * can pass on purpose: an undefined variable has to be looked for with `has`.
 */
export class BoundArguments {
  readonly #values = new Map<string, Value>();

  /** @throws {TemplateError} if there are too many, or one has an unknown name or comes twice */
  constructor(callee: string, names: readonly string[], { positional, named }: CallArguments) {
    if (positional.length > names.length) throw failed(`${callee}() takes ${names.length} arguments`);
    positional.forEach((value, at) => this.#values.set(names[at]!, value));
    for (const [name, value] of named) {
      if (!names.includes(name) || this.#values.has(name))
        throw failed(`${callee}() got an unexpected argument '${name}'`);
      this.#values.set(name, value);
    }
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  get(name: string): Value {
    return this.#values.get(name);
  }

  text(name: string, otherwise: string): string {
    const value = this.textOrNull(name);
    return value ?? otherwise;
  }

  textOrNull(name: string): string | null {
    const value = this.get(name);
    if (!this.has(name) || value === null) return null;
    if (typeof value !== "string") throw failed(`'${name}' must be str, not ${typeName(value)}`);
    return value;
  }

  required(name: string): string {
    const value = this.textOrNull(name);
    if (value === null) throw failed(`'${name}' must be str`);
    return value;
  }

  integer(name: string, otherwise: number): number {
    const value = this.get(name);
    if (!this.has(name) || value === null) return otherwise;
    const number = isInteger(value) || typeof value === "boolean" ? asNumber(value) : null;
    if (number === null) throw failed(`'${name}' must be int, not ${typeName(value)}`);
    return number;
  }

  flag(name: string, otherwise = false): boolean {
    return this.has(name) ? truthy(this.get(name)) : otherwise;
  }
}
