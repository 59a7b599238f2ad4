import type { Arguments, Expression, Parameter, Statement, Target } from "./ast.ts";
import { attributeOf, itemOf, sliceOf } from "./attributes.ts";
import { runFilter } from "./filters.ts";
import { Loop } from "./loop.ts";
import { calculate, compareWith, negate } from "./operators.ts";
import { Scope } from "./scope.ts";
import { failed, TemplateError, unsupported } from "./templateError.ts";
import { runTest } from "./tests.ts";
import { textOf } from "./toText.ts";
import { Callable, type CallArguments, iterate, Namespace, Tuple, truthy, typeName, type Value } from "./values.ts";

/** How a statement ended. */
type Flow = "next" | "break" | "continue";

/** Calls of macros inside calls of macros. */
const MAX_CALLS = 100;

export interface RenderLimits {
  /** Statements and expressions evaluated. */
  readonly maxSteps: number;
  /** Characters printed, those of macros and blocks included. */
  readonly maxOutput: number;
}

/** Runs a parsed template once. */
export class Interpreter {
  readonly #limits: RenderLimits;
  #out: string[] = [];
  #steps = 0;
  #printed = 0;
  #calls = 0;

  constructor(limits: RenderLimits) {
    this.#limits = limits;
  }

  /** @throws {TemplateError} */
  run(template: readonly Statement[], scope: Scope): string {
    this.#body(template, scope);
    return this.#out.join("");
  }

  #step(): void {
    if (++this.#steps > this.#limits.maxSteps) throw new TemplateError("too_much", "the template takes too many steps");
  }

  #print(text: string): void {
    this.#printed += text.length;
    if (this.#printed > this.#limits.maxOutput) throw new TemplateError("too_much", "the template prints too much");
    this.#out.push(text);
  }

  /** What `run` prints, as a text of its own. */
  #captured(run: () => void): string {
    const outer = this.#out;
    this.#out = [];
    run();
    const text = this.#out.join("");
    this.#out = outer;
    return text;
  }

  #body(statements: readonly Statement[], scope: Scope): Flow {
    for (const statement of statements) {
      const flow = this.#statement(statement, scope);
      if (flow !== "next") return flow;
    }
    return "next";
  }

  #statement(statement: Statement, scope: Scope): Flow {
    this.#step();
    switch (statement.kind) {
      case "text":
        this.#print(statement.text);
        return "next";
      case "print":
        this.#print(textOf(this.#value(statement.value, scope)));
        return "next";
      case "set":
        assign(statement.target, this.#value(statement.value, scope), scope);
        return "next";
      case "setBlock": {
        const text = this.#captured(() => this.#body(statement.body, new Scope(scope)));
        assign(statement.target, statement.filter === null ? text : this.#value(statement.filter, scope, text), scope);
        return "next";
      }
      case "if":
        for (const { test, body } of statement.branches)
          if (truthy(this.#value(test, scope))) return this.#body(body, scope);
        return this.#body(statement.otherwise, scope);
      case "for":
        this.#for(statement, scope);
        return "next";
      case "macro":
        scope.set(statement.name, this.#macro(statement.name, statement.parameters, statement.body, scope));
        return "next";
      case "callBlock":
        this.#callBlock(statement, scope);
        return "next";
      case "filterBlock": {
        const text = this.#captured(() => this.#body(statement.body, new Scope(scope)));
        this.#print(textOf(this.#value(statement.filter, scope, text)));
        return "next";
      }
      case "with": {
        const inner = new Scope(scope);
        for (const { target, value } of statement.bindings) assign(target, this.#value(value, scope), inner);
        return this.#body(statement.body, inner);
      }
      case "generation":
        // A call block in transformers: what is set inside stays inside.
        return this.#body(statement.body, new Scope(scope));
      case "break":
      case "continue":
        break;
    }
    return statement.kind;
  }

  #for(statement: Statement & { readonly kind: "for" }, scope: Scope): void {
    if (statement.recursive) throw unsupported("a recursive loop");
    const { target, test } = statement;
    let items = iterate(this.#value(statement.iterable, scope));
    if (test !== null) {
      items = items.filter((item) => {
        const inner = new Scope(scope);
        assign(target, item, inner);
        return truthy(this.#value(test, inner));
      });
    }
    const loop = new Loop(items);
    for (; loop.at < items.length; loop.at++) {
      const inner = new Scope(scope);
      inner.set("loop", loop);
      assign(target, items[loop.at], inner);
      if (this.#body(statement.body, inner) === "break") break;
    }
    if (items.length === 0) this.#body(statement.otherwise, new Scope(scope));
  }

  #macro(name: string, parameters: readonly Parameter[], body: readonly Statement[], scope: Scope): Callable {
    return new Callable(name, ({ positional, named }) => {
      if (++this.#calls > MAX_CALLS) throw new TemplateError("too_much", "macros call each other too deep");
      const inner = new Scope(scope);
      const left = new Map(named);
      parameters.forEach((parameter, at) => {
        if (at < positional.length) inner.set(parameter.name, positional[at]);
        else if (left.has(parameter.name)) {
          inner.set(parameter.name, left.get(parameter.name));
          left.delete(parameter.name);
        } else inner.set(parameter.name, parameter.value === null ? undefined : this.#value(parameter.value, inner));
      });
      inner.set("caller", left.get("caller"));
      left.delete("caller");
      inner.set("varargs", new Tuple(positional.slice(parameters.length)));
      inner.set("kwargs", new Map(left));
      if ((left.size > 0 || positional.length > parameters.length) && !usesSpares(body))
        throw failed(`macro '${name}' was called with arguments that it does not take`);
      const text = this.#captured(() => this.#body(body, inner));
      this.#calls--;
      return text;
    });
  }

  #callBlock(statement: Statement & { readonly kind: "callBlock" }, scope: Scope): void {
    const { call, parameters, body } = statement;
    const args = this.#arguments(call.args, scope);
    const caller = this.#macro("caller", parameters, body, scope);
    const named = new Map([...args.named, ["caller", caller] as const]);
    this.#print(textOf(this.#call(call.callee, { positional: args.positional, named }, scope)));
  }

  #call(callee: Expression, args: CallArguments, scope: Scope): Value {
    const called = this.#value(callee, scope);
    if (!(called instanceof Callable)) throw failed(`'${typeName(called)}' object is not callable`);
    return called.call(args);
  }

  #arguments(args: Arguments, scope: Scope): CallArguments {
    const positional = args.positional.map((value) => this.#value(value, scope));
    const named = new Map(args.named.map(({ name, value }) => [name, this.#value(value, scope)]));
    if (args.spread !== null) positional.push(...iterate(this.#value(args.spread, scope)));
    if (args.spreadNamed !== null) {
      const more = this.#value(args.spreadNamed, scope);
      if (!(more instanceof Map)) throw failed("argument after ** must be a mapping");
      for (const [name, value] of more) named.set(textOf(name), value);
    }
    return { positional, named };
  }

  /** @param block the text that a filter without operand is applied to */
  #value(expression: Expression, scope: Scope, block = ""): Value {
    this.#step();
    switch (expression.kind) {
      case "constant":
        return expression.value;
      case "name":
        return scope.get(expression.name);
      case "list":
        return expression.items.map((item) => this.#value(item, scope));
      case "tuple":
        return new Tuple(expression.items.map((item) => this.#value(item, scope)));
      case "dict":
        return new Map(expression.pairs.map(([key, value]) => [this.#value(key, scope), this.#value(value, scope)]));
      case "attribute":
        return attributeOf(this.#value(expression.object, scope), expression.name);
      case "item":
        return this.#item(expression, scope);
      case "slice":
        throw failed("a slice outside of brackets");
      case "call":
        return this.#call(expression.callee, this.#arguments(expression.args, scope), scope);
      case "filter": {
        const operand = expression.operand === null ? block : this.#value(expression.operand, scope, block);
        return runFilter(expression.name, operand, this.#arguments(expression.args, scope));
      }
      case "test":
        return runTest(
          expression.name,
          this.#value(expression.operand, scope),
          this.#arguments(expression.args, scope),
        );
      case "not":
        return !truthy(this.#value(expression.operand, scope));
      case "negative":
        return negate(this.#value(expression.operand, scope));
      case "positive":
        return calculate("+", 0, this.#value(expression.operand, scope));
      case "and": {
        const left = this.#value(expression.left, scope);
        return truthy(left) ? this.#value(expression.right, scope) : left;
      }
      case "or": {
        const left = this.#value(expression.left, scope);
        return truthy(left) ? left : this.#value(expression.right, scope);
      }
      case "math":
        return calculate(
          expression.operator,
          this.#value(expression.left, scope),
          this.#value(expression.right, scope),
        );
      case "concat":
        return expression.items.map((item) => textOf(this.#value(item, scope))).join("");
      case "compare":
        return this.#compare(expression, scope);
      case "condition":
        break;
    }
    if (truthy(this.#value(expression.test, scope))) return this.#value(expression.value, scope);
    return expression.otherwise === null ? undefined : this.#value(expression.otherwise, scope);
  }

  #item(expression: Expression & { readonly kind: "item" }, scope: Scope): Value {
    const object = this.#value(expression.object, scope);
    const { key } = expression;
    if (key.kind !== "slice") return itemOf(object, this.#value(key, scope));
    const bound = (part: Expression | null): Value => (part === null ? null : this.#value(part, scope));
    return sliceOf(object, bound(key.start), bound(key.stop), bound(key.step));
  }

  /** `a < b < c` is true if each pair is. */
  #compare({ first, rest }: Expression & { readonly kind: "compare" }, scope: Scope): boolean {
    let left = this.#value(first, scope);
    for (const { operator, value } of rest) {
      const right = this.#value(value, scope);
      if (!compareWith(operator, left, right)) return false;
      left = right;
    }
    return true;
  }
}

function assign(target: Target, value: Value, scope: Scope): void {
  if (target.kind === "name") scope.set(target.name, value);
  else if (target.kind === "attribute") {
    const object = scope.get(target.object);
    if (!(object instanceof Namespace)) throw failed("cannot assign attribute on non-namespace object");
    object.attributes.set(target.name, value);
  } else {
    const items = iterate(value);
    if (items.length !== target.items.length)
      throw failed(`expected ${target.items.length} values, got ${items.length}`);
    target.items.forEach((item, at) => assign(item, items[at], scope));
  }
}

/** Whether a macro's body mentions `varargs` or `kwargs`: only then does it take arguments that it does not name. */
function usesSpares(body: readonly Statement[]): boolean {
  return /"name":"(?:varargs|kwargs)"/.test(
    JSON.stringify(body, (_, value: unknown) => (typeof value === "bigint" ? 0 : value)),
  );
}
