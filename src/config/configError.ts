import { pathText } from "./explainIssue.ts";
import type { Problem } from "./explainIssue.ts";

/** A configuration that must not be used. The message has a line per problem. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** Each with its place where it came from a file: `kvasir.yaml:12: listen.port: …`. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[], cause?: unknown) {
    super(problems.join("\n"), cause === undefined ? undefined : { cause });
    this.problems = problems;
  }
}

/** Where a key stands, e.g. `kvasir.yaml:12`; empty: not in a file. */
export type PlaceOf = (path: Problem["path"]) => string;

/** Beside the configurations, not in them: they are compared, printed and frozen. */
const places = new WeakMap<object, PlaceOf>();

export function rememberPlaces(config: object, placeOf: PlaceOf): void {
  places.set(config, placeOf);
}

/** A problem with one key that showed only after the configuration was loaded. */
export function problemAt(config: object, path: Problem["path"], what: string): string {
  return withPlace(places.get(config)?.(path) ?? "", `${pathText(path)}: ${what}`);
}

export function withPlace(place: string, text: string): string {
  return place === "" ? text : `${place}: ${text}`;
}
