import type { Expression, Statement } from "../jinja/ast.ts";
import type { ContentFormat } from "./conversation.ts";

/*
 * Which form of content a template wants, found as vLLM finds it: `openai` if it has a loop over a message's content,
 * followed through assignments and through parameters of macros.
 */

type Node = Statement | Expression;
type For = Statement & { readonly kind: "for" };
type Macro = Statement & { readonly kind: "macro" };

export function contentFormatOf(template: readonly Statement[]): ContentFormat {
  const nodes = [...walk(template)];
  const messages = itemsOfMessages(nodes);
  const inMacros = new Map<For, ReadonlySet<string>>();
  for (const macro of nodes.filter((node) => node.kind === "macro")) {
    const parameters = contentParameters(macro, nodes, messages);
    for (const loop of [...walk(macro.body)].filter((node) => node.kind === "for")) {
      if (parameters.size > 0 || !inMacros.has(loop)) inMacros.set(loop, parameters);
    }
  }
  const loops = nodes
    .filter((node) => node.kind === "for")
    .some(({ iterable }, _, all) => {
      const loop = all.find((one) => one.iterable === iterable)!;
      if (messages.some((message) => reads(iterable, message, "content"))) return true;
      if (iterable.kind !== "name") return false;
      const parameters = inMacros.get(loop);
      return parameters === undefined ? iterable.name === "content" : parameters.has(iterable.name);
    });
  return loops ? "openai" : "string";
}

/** Variables of loops over the messages. */
function itemsOfMessages(nodes: readonly Node[]): string[] {
  const lists = ["messages"];
  for (const list of lists) {
    for (const node of nodes) {
      if (node.kind !== "set" || node.target.kind !== "name" || !reads(node.value, list)) continue;
      if (!lists.includes(node.target.name)) lists.push(node.target.name);
    }
  }
  return nodes.flatMap((node) => {
    if (node.kind !== "for" || node.target.kind !== "name") return [];
    return lists.some((list) => reads(node.iterable, list)) ? [node.target.name] : [];
  });
}

/** Parameters of a macro that somewhere get a message's content. */
function contentParameters(macro: Macro, nodes: readonly Node[], messages: readonly string[]): Set<string> {
  const found = new Set<string>();
  const isContent = (value: Expression): boolean => messages.some((message) => reads(value, message, "content"));
  for (const node of nodes) {
    if (node.kind !== "call" || node.callee.kind !== "name" || node.callee.name !== macro.name) continue;
    node.args.positional.forEach((value, at) => {
      const parameter = macro.parameters[at];
      if (parameter !== undefined && isContent(value)) found.add(parameter.name);
    });
    for (const { name, value } of node.args.named)
      if (macro.parameters.some((parameter) => parameter.name === name) && isContent(value)) found.add(name);
  }
  return found;
}

/** Whether an expression is the variable, or this member of it, perhaps filtered, tested or sliced. */
function reads(expression: Expression, variable: string, member: string | null = null): boolean {
  if (expression.kind === "filter") return expression.operand !== null && reads(expression.operand, variable, member);
  if (expression.kind === "test") return reads(expression.operand, variable, member);
  if (expression.kind === "item" && expression.key.kind === "slice") return reads(expression.object, variable, member);
  if (member === null) return expression.kind === "name" && expression.name === variable;
  if (expression.kind === "attribute") return expression.name === member && isVariable(expression.object, variable);
  return (
    expression.kind === "item" &&
    expression.key.kind === "constant" &&
    expression.key.value === member &&
    isVariable(expression.object, variable)
  );
}

function isVariable(expression: Expression, variable: string): boolean {
  return expression.kind === "name" && expression.name === variable;
}

/** All statements and expressions below. */
function* walk(node: unknown): Generator<Node> {
  if (Array.isArray(node)) {
    for (const child of node) yield* walk(child);
  } else if (typeof node === "object" && node !== null) {
    if ("kind" in node) yield node as Node;
    for (const child of Object.values(node)) yield* walk(child);
  }
}
