import { z } from "zod";
import { configSchema } from "./schema.ts";

/** The part of JSON Schema that the configuration's has. */
export interface SchemaNode {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: SchemaNode | boolean;
  readonly items?: SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
  /** In words, where the bounds above don't say it. */
  readonly allowed?: string;
  /** The value must not be quoted. */
  readonly secret?: boolean;
}

/** What a person may write, for editors: `kvasir config schema`. */
export const configJsonSchema = z.toJSONSchema(configSchema, { io: "input" }) as SchemaNode;

/** The variants of a node, itself if it has none. */
export function variants(node: SchemaNode): readonly SchemaNode[] {
  return (node.anyOf ?? node.oneOf)?.flatMap(variants) ?? [node];
}

/** Every node that may stand at a key path. */
export function nodesAt(path: readonly PropertyKey[], from: SchemaNode = configJsonSchema): readonly SchemaNode[] {
  const [key, ...rest] = path;
  if (key === undefined) return variants(from);
  return variants(from).flatMap((node) => {
    const child = typeof key === "number" ? node.items : (node.properties?.[String(key)] ?? node.additionalProperties);
    return typeof child === "object" ? nodesAt(rest, child) : [];
  });
}
