import type { z } from "zod";
import { nodesAt, type SchemaNode } from "./jsonSchema.ts";
import { nearest } from "./nearest.ts";

type Issue = z.core.$ZodIssue;

/** One thing wrong with a configuration. */
export interface Problem {
  readonly path: readonly PropertyKey[];
  readonly text: string;
}

type Path = readonly PropertyKey[];

/**
 * What is wrong, with key path, value and what is allowed: `limits.connectMs: 0 is not allowed; allowed: 1..600000`.
 * `under`: where in a configuration the value would stand, if it is only a part of one.
 */
export function explainIssue(issue: Issue, under: Path = []): readonly Problem[] {
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => unknownKey(issue.path, key, under));
  const inner = issue.code === "invalid_union" ? meantVariant(issue) : null;
  if (inner !== null) return inner.flatMap((one) => explainIssue(one, under));
  const allowed = allowedText(nodesAt([...under, ...issue.path]));
  if (issue.input !== undefined) return [notAllowed(issue.path, issue.input, allowed, under)];
  return [{ path: issue.path, text: `${pathText(issue.path)}: is missing; allowed: ${allowed}` }];
}

export function notAllowed(path: Path, input: unknown, allowed: string, under: Path = []): Problem {
  const value = quote(input, nodesAt([...under, ...path]));
  return { path, text: `${pathText(path)}: ${value} is not allowed; allowed: ${allowed}` };
}

function unknownKey(path: Path, key: string, under: Path): Problem {
  const known = nodesAt([...under, ...path]).flatMap((node) => Object.keys(node.properties ?? {}));
  return { path: [...path, key], text: `${pathText([...path, key])}: ${unknownName("key", key, known)}` };
}

/** `unknown key; did you mean policy?`, or all that are known where none is near. */
export function unknownName(what: "key" | "option", name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  if (meant !== null) return `unknown ${what}; did you mean ${meant}?`;
  return `unknown ${what}; known: ${known.toSorted().join(", ") || "none"}`;
}

/** The issues of the only variant that has the value's form, with their full paths. */
function meantVariant(issue: z.core.$ZodIssueInvalidUnion): readonly Issue[] | null {
  const fitting = issue.errors.filter((issues) =>
    issues.every((one) => one.path.length > 0 || one.code === "unrecognized_keys"),
  );
  const [only, ...others] = fitting;
  if (only === undefined || others.length > 0) return null;
  return only.map((one) => ({ ...one, path: [...issue.path, ...one.path] }));
}

export function pathText(path: readonly PropertyKey[]): string {
  return path.length === 0 ? "configuration" : path.map(String).join(".");
}

function quote(input: unknown, nodes: readonly SchemaNode[]): string {
  if (nodes.some((node) => node.secret === true)) return "this value";
  const text = JSON.stringify(input) ?? String(input);
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}

export function allowedText(nodes: readonly SchemaNode[]): string {
  return [...new Set(nodes.map(allowedByNode))].join(", or ");
}

function allowedByNode(node: SchemaNode): string {
  if (node.allowed !== undefined) return node.allowed;
  if (node.enum !== undefined) return node.enum.join(", ");
  if (node.type === "integer") return `${node.minimum ?? ""}..${node.maximum ?? ""}`;
  if (node.type === "number") return `${node.minimum ?? ""}..${node.maximum ?? ""}, fractions too`;
  if (node.type === "boolean") return "true, false";
  if (node.type === "array") return node.maxItems === undefined ? "a list" : `a list of at most ${node.maxItems}`;
  if (node.type === "object") return "a mapping";
  if (node.type === "null") return "null";
  if (node.minLength === undefined) return "a string";
  if (node.maxLength === undefined) return `a string of at least ${node.minLength} characters`;
  return `a string of ${node.minLength}..${node.maxLength} characters`;
}
