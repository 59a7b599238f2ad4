import { readFile } from "node:fs/promises";
import { parseDocument, LineCounter, isNode } from "yaml";
import { crossChecks } from "./crossChecks.ts";
import { explainIssue, pathText, type Problem } from "./explainIssue.ts";
import { interpolate } from "./interpolate.ts";
import { type Config, type ConfigInput, configSchema } from "./schema.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A configuration that must not be used. The message has a line per problem. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(origin: string, problems: readonly string[], cause?: unknown) {
    super(problems.map((problem) => `${origin}${problem}`).join("\n"), cause === undefined ? undefined : { cause });
    this.problems = problems;
  }
}

/** Reads, checks and freezes a configuration file (YAML, of which JSON is a part). */
export async function loadConfig(path: string, environment: Environment): Promise<Config> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new ConfigError(`${path}: `, [cause instanceof Error ? cause.message : String(cause)], cause);
  }
  return parseConfig(text, environment, path);
}

/** As `loadConfig`, from text; `origin` stands before each problem. */
export function parseConfig(text: string, environment: Environment, origin = "configuration"): Config {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  const lineOf = (offset: number) => `:${lineCounter.linePos(offset).line}: `;
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    throw new ConfigError(
      origin,
      faults.map((fault) => `${lineOf(fault.pos[0])}${fault.message}`),
    );
  }
  let written: unknown;
  try {
    written = document.toJS({ maxAliasCount: 100 }) ?? {};
  } catch (cause) {
    throw new ConfigError(origin, [`: ${cause instanceof Error ? cause.message : String(cause)}`], cause);
  }
  return check(written, environment, origin, ({ path }) => {
    for (let length = path.length; length > 0; length--) {
      const node = document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return lineOf(node.range[0]);
    }
    return ": ";
  });
}

/** A configuration made by the program itself, e.g. from command-line flags. */
export function configFrom(input: ConfigInput): Config {
  return check(input, {}, "configuration", () => ": ");
}

function check(
  written: unknown,
  environment: Environment,
  origin: string,
  place: (problem: Pick<Problem, "path">) => string,
): Config {
  const { value, missing } = interpolate(written, environment);
  if (missing.length > 0) {
    throw new ConfigError(
      origin,
      missing.map((one) => `${place(one)}${pathText(one.path)}: the environment variable ${one.variable} is not set`),
    );
  }
  const parsed = configSchema.safeParse(value, { reportInput: true });
  const problems = parsed.success ? crossChecks(parsed.data) : parsed.error.issues.flatMap(explainIssue);
  if (parsed.success && problems.length === 0) return deepFreeze(parsed.data);
  throw new ConfigError(
    origin,
    problems.map((problem) => place(problem) + problem.text),
  );
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}
