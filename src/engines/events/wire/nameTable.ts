interface Entry<Value> {
  readonly bytes: Uint8Array;
  readonly value: Value;
}

/** Looks names up by their bytes in a message, so that no string is made for the few that repeat in every event. */
export class NameTable<Value> {
  readonly #byLength: Entry<Value>[][] = [];

  constructor(names: Readonly<Record<string, Value>>) {
    for (const [name, value] of Object.entries(names)) {
      const bytes = Buffer.from(name);
      (this.#byLength[bytes.length] ??= []).push({ bytes, value });
    }
  }

  /** Undefined for a name that is not in the table. The caller has checked the bounds. */
  find(message: Uint8Array, start: number, length: number): Value | undefined {
    const entries = this.#byLength[length];
    if (entries === undefined) return undefined;
    for (const { bytes, value } of entries) {
      let at = 0;
      while (at < length && bytes[at] === message[start + at]) at++;
      if (at === length) return value;
    }
    return undefined;
  }
}
