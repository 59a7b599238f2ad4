import type { Arguments, CompareOperator, Expression, MathOperator, Parameter, Statement, Target } from "./ast.ts";
import { type Token, type TokenKind, tokenize } from "./lexer.ts";
import { failed, unsupported } from "./templateError.ts";
import { PyFloat } from "./values.ts";

const NO_ARGUMENTS: Arguments = { positional: [], named: [], spread: null, spreadNamed: null };
const COMPARISONS: ReadonlySet<string> = new Set(["==", "!=", "<", "<=", ">", ">="]);
/** What may follow the name of a test without parentheses, as its argument. */
const ARGUMENT_STARTS: ReadonlySet<TokenKind> = new Set<TokenKind>(["name", "string", "integer", "float"]);
const CONSTANTS: ReadonlyMap<string, boolean | null> = new Map([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null],
]);
/** Deeper than any template in use, and no danger to the stack. */
const MAX_DEPTH = 200;

/** Parses a template. @throws {TemplateError} */
export function parse(source: string): Statement[] {
  return new Parser(tokenize(source)).template();
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  template(): Statement[] {
    return this.#body([]);
  }

  get #token(): Token {
    return this.#tokens[this.#at]!;
  }

  #is(kind: TokenKind, text?: string): boolean {
    return this.#token.kind === kind && (text === undefined || this.#token.text === text);
  }

  #isOperator(text: string): boolean {
    return this.#is("operator", text);
  }

  #skip(kind: TokenKind, text?: string): boolean {
    if (!this.#is(kind, text)) return false;
    this.#at++;
    return true;
  }

  #expect(kind: TokenKind, text?: string): string {
    const token = this.#token;
    if (!this.#skip(kind, text)) throw failed(`expected ${text ?? kind}, found ${token.kind} '${token.text}'`);
    return token.text;
  }

  #name(): string {
    return this.#expect("name");
  }

  // Statements

  /** Statements up to a block tag with one of these names, which stays the current token; up to the end without. */
  #body(ends: readonly string[]): Statement[] {
    if (++this.#depth > MAX_DEPTH) throw unsupported("deeper nesting");
    const body: Statement[] = [];
    for (;;) {
      if (this.#is("text")) body.push({ kind: "text", text: this.#expect("text") });
      else if (this.#skip("variableBegin")) {
        body.push({ kind: "print", value: this.#tuple() });
        this.#expect("variableEnd");
      } else if (this.#skip("blockBegin")) {
        if (this.#is("name") && ends.includes(this.#token.text)) break;
        body.push(this.#statement());
        this.#expect("blockEnd");
      } else if (this.#is("end")) {
        if (ends.length > 0) throw failed(`the template ends where ${ends.join(" or ")} is missing`);
        break;
      } else throw failed(`unexpected ${this.#token.kind}`);
    }
    this.#depth--;
    return body;
  }

  /** Body of a block: from the end of its opening tag up to one of `ends`. */
  #block(...ends: string[]): Statement[] {
    this.#skip("operator", ":");
    this.#expect("blockEnd");
    return this.#body(ends);
  }

  /** The same, with the closing tag's name consumed. */
  #closedBlock(end: string): Statement[] {
    const body = this.#block(end);
    this.#name();
    return body;
  }

  #statement(): Statement {
    const tag = this.#name();
    switch (tag) {
      case "set":
        return this.#set();
      case "for":
        return this.#for();
      case "if":
        return this.#if();
      case "macro":
        return {
          kind: "macro",
          name: this.#name(),
          parameters: this.#parameters(),
          body: this.#closedBlock("endmacro"),
        };
      case "call":
        return this.#callBlock();
      case "filter":
        return { kind: "filterBlock", filter: this.#filters(null, true)!, body: this.#closedBlock("endfilter") };
      case "with":
        return this.#with();
      case "generation":
        return { kind: "generation", body: this.#closedBlock("endgeneration") };
      case "break":
      case "continue":
        return { kind: tag };
      default:
        throw unsupported(`the tag '${tag}'`);
    }
  }

  #set(): Statement {
    const target = this.#target(true);
    if (this.#skip("operator", "=")) return { kind: "set", target, value: this.#tuple() };
    const filter = this.#filters(null, false);
    return { kind: "setBlock", target, filter, body: this.#closedBlock("endset") };
  }

  #for(): Statement {
    const target = this.#target(false);
    this.#expect("name", "in");
    const iterable = this.#tuple(false, ["recursive"]);
    const test = this.#skip("name", "if") ? this.#expression() : null;
    const recursive = this.#skip("name", "recursive");
    const body = this.#block("endfor", "else");
    const otherwise = this.#name() === "else" ? this.#closedBlock("endfor") : [];
    return { kind: "for", target, iterable, test, recursive, body, otherwise };
  }

  #if(): Statement {
    const branches: { test: Expression; body: Statement[] }[] = [];
    for (;;) {
      const test = this.#tuple(false);
      branches.push({ test, body: this.#block("elif", "else", "endif") });
      const next = this.#name();
      if (next === "elif") continue;
      return { kind: "if", branches, otherwise: next === "else" ? this.#closedBlock("endif") : [] };
    }
  }

  #callBlock(): Statement {
    const parameters = this.#isOperator("(") ? this.#parameters() : [];
    const call = this.#expression();
    if (call.kind !== "call") throw failed("a call block calls nothing");
    return { kind: "callBlock", call, parameters, body: this.#closedBlock("endcall") };
  }

  #with(): Statement {
    const bindings: { target: Target; value: Expression }[] = [];
    while (!this.#is("blockEnd")) {
      if (bindings.length > 0) this.#expect("operator", ",");
      const target = this.#target(false);
      this.#expect("operator", "=");
      bindings.push({ target, value: this.#expression() });
    }
    return { kind: "with", bindings, body: this.#closedBlock("endwith") };
  }

  #parameters(): Parameter[] {
    const parameters: Parameter[] = [];
    this.#expect("operator", "(");
    while (!this.#isOperator(")")) {
      if (parameters.length > 0) this.#expect("operator", ",");
      const name = this.#name();
      const value = this.#skip("operator", "=") ? this.#expression() : null;
      if (value === null && parameters.at(-1)?.value) throw failed("non-default argument follows default argument");
      parameters.push({ name, value });
    }
    this.#expect("operator", ")");
    return parameters;
  }

  #target(withAttributes: boolean): Target {
    const items: Target[] = [];
    let tuple = false;
    for (;;) {
      if (items.length > 0) this.#expect("operator", ",");
      if (!this.#is("name") && !this.#isOperator("(")) break;
      if (this.#is("name", "in") && tuple) break;
      items.push(this.#oneTarget(withAttributes));
      if (!this.#isOperator(",")) break;
      tuple = true;
    }
    const [only] = items;
    if (only === undefined) throw failed("nothing to assign to");
    return tuple ? { kind: "tuple", items } : only;
  }

  #oneTarget(withAttributes: boolean): Target {
    if (this.#skip("operator", "(")) {
      const target = this.#target(withAttributes);
      this.#expect("operator", ")");
      return target;
    }
    const name = this.#name();
    if (withAttributes && this.#skip("operator", ".")) return { kind: "attribute", object: name, name: this.#name() };
    return { kind: "name", name };
  }

  // Expressions, from the loosest to the tightest binding

  /** An expression, or several with commas: a tuple. */
  #tuple(withCondition = true, ends: readonly string[] = [], parenthesized = false): Expression {
    const items: Expression[] = [];
    let tuple = false;
    for (;;) {
      if (items.length > 0) this.#expect("operator", ",");
      if (this.#is("variableEnd") || this.#is("blockEnd") || this.#isOperator(")")) break;
      if (this.#is("name") && ends.includes(this.#token.text)) break;
      items.push(withCondition ? this.#expression() : this.#or());
      if (!this.#isOperator(",")) break;
      tuple = true;
    }
    const [only] = items;
    if (only !== undefined && !tuple) return only;
    if (only === undefined && !parenthesized) throw failed("an expression is missing");
    return { kind: "tuple", items };
  }

  #expression(): Expression {
    if (++this.#depth > MAX_DEPTH) throw unsupported("deeper nesting");
    let value = this.#or();
    while (this.#skip("name", "if")) {
      const test = this.#or();
      value = {
        kind: "condition",
        test,
        value,
        otherwise: this.#skip("name", "else") ? this.#expression() : null,
      };
    }
    this.#depth--;
    return value;
  }

  #or(): Expression {
    let left = this.#and();
    while (this.#skip("name", "or")) left = { kind: "or", left, right: this.#and() };
    return left;
  }

  #and(): Expression {
    let left = this.#not();
    while (this.#skip("name", "and")) left = { kind: "and", left, right: this.#not() };
    return left;
  }

  #not(): Expression {
    return this.#skip("name", "not") ? { kind: "not", operand: this.#not() } : this.#compare();
  }

  #compare(): Expression {
    const first = this.#sum();
    const rest: { operator: CompareOperator; value: Expression }[] = [];
    for (;;) {
      let operator: CompareOperator;
      if (this.#is("operator") && COMPARISONS.has(this.#token.text))
        operator = this.#expect("operator") as CompareOperator;
      else if (this.#skip("name", "in")) operator = "in";
      else if (this.#is("name", "not") && this.#tokens[this.#at + 1]!.text === "in") {
        this.#at += 2;
        operator = "not in";
      } else break;
      rest.push({ operator, value: this.#sum() });
    }
    return rest.length === 0 ? first : { kind: "compare", first, rest };
  }

  #sum(): Expression {
    return this.#math(["+", "-"], () => this.#concat());
  }

  #concat(): Expression {
    const items = [this.#product()];
    while (this.#skip("operator", "~")) items.push(this.#product());
    return items.length === 1 ? items[0]! : { kind: "concat", items };
  }

  #product(): Expression {
    return this.#math(["*", "/", "//", "%"], () => this.#math(["**"], () => this.#unary(true)));
  }

  #math(operators: readonly MathOperator[], operand: () => Expression): Expression {
    let left = operand();
    while (this.#is("operator") && (operators as readonly string[]).includes(this.#token.text)) {
      const operator = this.#expect("operator") as MathOperator;
      left = { kind: "math", operator, left, right: operand() };
    }
    return left;
  }

  #unary(withFilters: boolean): Expression {
    let value: Expression;
    if (this.#skip("operator", "-")) value = { kind: "negative", operand: this.#unary(false) };
    else if (this.#skip("operator", "+")) value = { kind: "positive", operand: this.#unary(false) };
    else value = this.#primary();
    value = this.#postfix(value);
    if (!withFilters) return value;
    for (;;) {
      if (this.#isOperator("|")) value = this.#filters(value, false)!;
      else if (this.#is("name", "is")) value = this.#test(value);
      else if (this.#isOperator("(")) value = { kind: "call", callee: value, args: this.#arguments() };
      else return value;
    }
  }

  #primary(): Expression {
    const { kind, text } = this.#token;
    if (kind === "name") {
      this.#at++;
      const constant = CONSTANTS.get(text);
      return constant === undefined ? { kind: "name", name: text } : { kind: "constant", value: constant };
    }
    if (kind === "string") {
      let value = "";
      while (this.#is("string")) value += this.#expect("string");
      return { kind: "constant", value };
    }
    if (this.#skip("integer")) return { kind: "constant", value: Number(text) };
    if (this.#skip("float")) return { kind: "constant", value: new PyFloat(Number(text)) };
    return this.#bracketed();
  }

  #bracketed(): Expression {
    if (this.#skip("operator", "(")) {
      const value = this.#tuple(true, [], true);
      this.#expect("operator", ")");
      return value;
    }
    if (this.#skip("operator", "[")) {
      const items = this.#separated("]", () => this.#expression());
      return { kind: "list", items };
    }
    if (this.#skip("operator", "{")) {
      const pairs = this.#separated("}", () => {
        const key = this.#expression();
        this.#expect("operator", ":");
        return [key, this.#expression()] as const;
      });
      return { kind: "dict", pairs };
    }
    throw failed(`unexpected ${this.#token.kind} '${this.#token.text}'`);
  }

  #separated<T>(close: string, item: () => T): T[] {
    const items: T[] = [];
    while (!this.#isOperator(close)) {
      if (items.length > 0) this.#expect("operator", ",");
      if (this.#isOperator(close)) break;
      items.push(item());
    }
    this.#expect("operator", close);
    return items;
  }

  #postfix(value: Expression): Expression {
    let result = value;
    for (;;) {
      if (this.#skip("operator", ".")) {
        if (this.#is("integer")) {
          result = { kind: "item", object: result, key: { kind: "constant", value: Number(this.#expect("integer")) } };
        } else result = { kind: "attribute", object: result, name: this.#name() };
      } else if (this.#skip("operator", "[")) {
        const keys: Expression[] = [];
        while (!this.#isOperator("]")) {
          if (keys.length > 0) this.#expect("operator", ",");
          keys.push(this.#subscript());
        }
        this.#expect("operator", "]");
        result = { kind: "item", object: result, key: keys.length === 1 ? keys[0]! : { kind: "tuple", items: keys } };
      } else if (this.#isOperator("(")) result = { kind: "call", callee: result, args: this.#arguments() };
      else return result;
    }
  }

  #subscript(): Expression {
    const start = this.#isOperator(":") ? null : this.#expression();
    if (!this.#skip("operator", ":")) return start!;
    const part = (): Expression | null =>
      this.#isOperator(":") || this.#isOperator("]") || this.#isOperator(",") ? null : this.#expression();
    const stop = part();
    const step = this.#skip("operator", ":") ? part() : null;
    return { kind: "slice", start, stop, step };
  }

  #arguments(): Arguments {
    const positional: Expression[] = [];
    const named: { name: string; value: Expression }[] = [];
    let spread: Expression | null = null;
    let spreadNamed: Expression | null = null;
    this.#expect("operator", "(");
    let first = true;
    while (!this.#isOperator(")")) {
      if (!first) this.#expect("operator", ",");
      first = false;
      if (this.#isOperator(")")) break;
      if (this.#skip("operator", "*")) spread = this.#expression();
      else if (this.#skip("operator", "**")) spreadNamed = this.#expression();
      else if (
        this.#is("name") &&
        this.#tokens[this.#at + 1]!.kind === "operator" &&
        this.#tokens[this.#at + 1]!.text === "="
      ) {
        const name = this.#name();
        this.#at++;
        named.push({ name, value: this.#expression() });
      } else positional.push(this.#expression());
    }
    this.#expect("operator", ")");
    return { positional, named, spread, spreadNamed };
  }

  /** Filters after `operand`; with `inline` the first stands without a bar. Null if there are none. */
  #filters(operand: Expression | null, inline: boolean): Expression | null {
    let value = operand;
    let bare = inline;
    while (bare || this.#isOperator("|")) {
      if (!bare) this.#at++;
      bare = false;
      const name = this.#dottedName();
      value = { kind: "filter", operand: value, name, args: this.#isOperator("(") ? this.#arguments() : NO_ARGUMENTS };
    }
    return value;
  }

  #test(operand: Expression): Expression {
    this.#expect("name", "is");
    const negated = this.#skip("name", "not");
    const name = this.#dottedName();
    let args = NO_ARGUMENTS;
    const { kind, text } = this.#token;
    if (this.#isOperator("(")) args = this.#arguments();
    else if (
      (ARGUMENT_STARTS.has(kind) && !(kind === "name" && ["else", "or", "and"].includes(text))) ||
      this.#isOperator("[") ||
      this.#isOperator("{")
    ) {
      if (kind === "name" && text === "is") throw failed("tests cannot be chained");
      args = { ...NO_ARGUMENTS, positional: [this.#postfix(this.#primary())] };
    }
    const test: Expression = { kind: "test", operand, name, args };
    return negated ? { kind: "not", operand: test } : test;
  }

  #dottedName(): string {
    let name = this.#name();
    while (this.#skip("operator", ".")) name += `.${this.#name()}`;
    return name;
  }
}
