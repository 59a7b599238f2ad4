import type { Statement } from "./ast.ts";
import { globalsOf } from "./globals.ts";
import { Interpreter, type RenderLimits } from "./interpreter.ts";
import { parse } from "./parser.ts";
import { Scope } from "./scope.ts";
import type { Value } from "./values.ts";

/** Far above what a prompt of millions of tokens takes. */
const DEFAULT_LIMITS: RenderLimits = { maxSteps: 20_000_000, maxOutput: 256 * 1024 * 1024 };

/**
 * A Jinja template as transformers sets it up for chats: `trim_blocks`, `lstrip_blocks`, loop controls, the `generation`
 * tag, its own `tojson`, `raise_exception` and `strftime_now`. Values behave as Python's do; whatever is not built is
 * refused and never guessed.
 */
export class Template {
  readonly source: string;
  readonly statements: readonly Statement[];
  readonly #limits: RenderLimits;

  /** @throws {TemplateError} */
  constructor(source: string, limits: Partial<RenderLimits> = {}) {
    this.source = source;
    this.statements = parse(source);
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
  }

  /** @throws {TemplateError} */
  render(variables: ReadonlyMap<string, Value>, now: Date): string {
    const scope = new Scope(null);
    for (const [name, value] of globalsOf(now)) scope.set(name, value);
    for (const [name, value] of variables) scope.set(name, value);
    return new Interpreter(this.#limits).run(this.statements, scope);
  }
}
