/** A number that a policy can be given. */
export interface NumberOption {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  readonly integer?: boolean;
  /** For the documentation and the exported configuration schema. */
  readonly about: string;
}

export type OptionTable = Readonly<Record<string, NumberOption>>;

/** The values that an option table yields: a number per key. */
export type Values<Table extends OptionTable> = { readonly [Key in keyof Table]: number };

/** A policy was named or given an option that does not exist or is out of range. */
export class PolicyOptionError extends Error {
  override readonly name = "PolicyOptionError";
  readonly key: string;
  readonly value: unknown;
  /** What would be accepted. */
  readonly allowed: string;

  constructor(key: string, value: unknown, allowed: string) {
    super(`${key}: ${shown(value)} is not allowed; allowed: ${allowed}`);
    this.key = key;
    this.value = value;
    this.allowed = allowed;
  }
}

/** Defaults with `given` over them. Throws PolicyOptionError for an unknown key, a non-number or a value out of range. */
export function readOptions<Table extends OptionTable>(
  policy: string,
  table: Table,
  given: Readonly<Record<string, unknown>>,
): Values<Table> {
  for (const key of Object.keys(given))
    if (!Object.hasOwn(table, key))
      throw new PolicyOptionError(`${policy}.${key}`, given[key], `options ${Object.keys(table).join(", ") || "none"}`);
  const values: Record<string, number> = {};
  for (const [key, option] of Object.entries(table)) {
    const value = given[key] === undefined ? option.default : given[key];
    if (!fits(value, option))
      throw new PolicyOptionError(
        `${policy}.${key}`,
        value,
        `${option.integer === true ? "a whole number" : "a number"} from ${option.min} to ${option.max}`,
      );
    values[key] = value;
  }
  return values as Values<Table>;
}

function fits(value: unknown, option: NumberOption): value is number {
  return (
    typeof value === "number" &&
    value >= option.min &&
    value <= option.max &&
    (option.integer !== true || Number.isInteger(value))
  );
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}
