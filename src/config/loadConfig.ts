import { readFile } from "node:fs/promises";
import { parseDocument, LineCounter, isNode } from "yaml";
import { ConfigError, rememberPlaces, withPlace } from "./configError.ts";
import type { PlaceOf } from "./configError.ts";
import { crossChecks } from "./crossChecks.ts";
import { explainIssue, pathText } from "./explainIssue.ts";
import { interpolate } from "./interpolate.ts";
import { type Config, type ConfigInput, configSchema } from "./schema.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads, checks and freezes a configuration file (YAML, of which JSON is a part). */
export async function loadConfig(path: string, environment: Environment): Promise<Config> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new ConfigError([`${path}: ${messageOf(cause)}`], cause);
  }
  return parseConfig(text, environment, path);
}

/** As `loadConfig`, from text; `origin` stands before each problem. */
export function parseConfig(text: string, environment: Environment, origin = "configuration"): Config {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  const atLine = (offset: number) => `${origin}:${lineCounter.linePos(offset).line}`;
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) throw new ConfigError(faults.map((fault) => `${atLine(fault.pos[0])}: ${fault.message}`));
  let written: unknown;
  try {
    written = document.toJS({ maxAliasCount: 100 }) ?? {};
  } catch (cause) {
    throw new ConfigError([`${origin}: ${messageOf(cause)}`], cause);
  }
  if (isCyclic(written)) throw new ConfigError([`${origin}: an alias stands for a value that contains itself`]);
  return check(written, environment, (path) => {
    for (let length = path.length; length > 0; length--) {
      const node = document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return atLine(node.range[0]);
    }
    return origin;
  });
}

/** A configuration made by the program itself, e.g. from command-line flags. */
export function configFrom(input: ConfigInput): Config {
  return check(input, {}, () => "");
}

function check(written: unknown, environment: Environment, placeOf: PlaceOf): Config {
  const { value, missing } = interpolate(written, environment);
  if (missing.length > 0) {
    throw new ConfigError(
      missing.map(({ path, variable }) =>
        withPlace(placeOf(path), `${pathText(path)}: the environment variable ${variable} is not set`),
      ),
    );
  }
  const parsed = configSchema.safeParse(value, { reportInput: true });
  const problems = parsed.success
    ? crossChecks(parsed.data)
    : parsed.error.issues.flatMap((issue) => explainIssue(issue));
  if (!parsed.success || problems.length > 0)
    throw new ConfigError(problems.map(({ path, text }) => withPlace(placeOf(path), text)));
  const config = deepFreeze(parsed.data);
  rememberPlaces(config, placeOf);
  return config;
}

/** An alias within its own anchor makes a value without end. */
function isCyclic(value: unknown, within: ReadonlySet<unknown> = new Set()): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (within.has(value)) return true;
  const inside = new Set([...within, value]);
  return Object.values(value).some((inner) => isCyclic(inner, inside));
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}
