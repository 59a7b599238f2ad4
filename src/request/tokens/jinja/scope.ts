import type { Value } from "./values.ts";

/** Variables of a template, of a loop's turn, of a macro's call. */
export class Scope {
  readonly #variables = new Map<string, Value>();
  readonly #parent: Scope | null;

  constructor(parent: Scope | null) {
    this.#parent = parent;
  }

  set(name: string, value: Value): void {
    this.#variables.set(name, value);
  }

  get(name: string): Value {
    const value = this.#variables.get(name);
    if (value !== undefined || this.#parent === null || this.#variables.has(name)) return value;
    return this.#parent.get(name);
  }
}
