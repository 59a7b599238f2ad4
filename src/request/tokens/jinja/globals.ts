import { BoundArguments } from "./callArguments.ts";
import { strftime } from "./strftime.ts";
import { failed, TemplateError } from "./templateError.ts";
import { textOf } from "./toText.ts";
import { Callable, type CallArguments, iterate, Namespace, Tuple, typeName, type Value } from "./values.ts";

/** The sandbox refuses longer ones. */
const MAX_RANGE = 100_000;

/** What a template can call without being given it: Jinja's globals, and the two that transformers adds. */
export function globalsOf(now: Date): ReadonlyMap<string, Value> {
  return new Map<string, Value>([
    ["range", new Callable("range", range)],
    ["dict", new Callable("dict", (args) => new Map(entriesOf(args)))],
    ["namespace", new Callable("namespace", (args) => new Namespace(new Map(entriesOf(args))))],
    [
      "raise_exception",
      new Callable("raise_exception", (args) => {
        const message = new BoundArguments("raise_exception", ["message"], args).get("message");
        throw new TemplateError("refused", textOf(message));
      }),
    ],
    [
      "strftime_now",
      new Callable("strftime_now", (args) =>
        strftime(now, new BoundArguments("strftime_now", ["format"], args).required("format")),
      ),
    ],
  ]);
}

function range({ positional, named }: CallArguments): Value {
  const bounds = positional.map((bound) => {
    if (typeof bound !== "number") throw failed(`'${typeName(bound)}' object cannot be interpreted as an integer`);
    return bound;
  });
  if (bounds.length === 0 || bounds.length > 3 || named.size > 0) throw failed("range expected 1 to 3 arguments");
  const start = bounds.length === 1 ? 0 : bounds[0]!;
  const stop = bounds.length === 1 ? bounds[0]! : bounds[1]!;
  const step = bounds[2] ?? 1;
  if (step === 0) throw failed("range() arg 3 must not be zero");
  const length = Math.max(0, Math.ceil((stop - start) / step));
  if (length > MAX_RANGE) throw failed(`a range of ${length} is too big`);
  return Array.from({ length }, (_, at) => start + at * step);
}

function entriesOf({ positional, named }: CallArguments): [string, Value][] {
  if (positional.length > 1) throw failed("expected at most 1 argument");
  const [source] = positional;
  const entries: [string, Value][] = [];
  if (source instanceof Map) for (const [key, value] of source) entries.push([textOf(key), value]);
  else if (positional.length === 1) {
    for (const pair of iterate(source)) {
      const [key, value] = pair instanceof Tuple || Array.isArray(pair) ? iterate(pair) : [];
      if (typeof key !== "string") throw failed("pairs of a str and a value were expected");
      entries.push([key, value]);
    }
  }
  return [...entries, ...named];
}
