import { allowedText } from "./explainIssue.ts";
import { configJsonSchema, type SchemaNode, variants } from "./jsonSchema.ts";

interface Row {
  readonly key: string;
  readonly allowed: string;
  readonly fallback: string;
  readonly description: string;
}

/** The reference part of docs/configuration.md: a table per top-level key, straight from the schema. */
export function configReference(): string {
  return Object.entries(configJsonSchema.properties ?? {})
    .map(([key, node]) => section(key, node))
    .join("\n");
}

function section(key: string, node: SchemaNode): string {
  const rows = [...below(key, node)];
  const table = rows.map((row) => `| \`${row.key}\` | ${row.allowed} | ${row.fallback} | ${row.description} |`);
  const intro = node.description === undefined ? "" : `\n${node.description}\n`;
  if (table.length === 0)
    return `### ${key}\n${intro}\nAllowed: ${cell(allowedText(variants(node)))}. Default: ${fallback(node)}.\n`;
  return `### ${key}\n${intro}\n| key | allowed | default | meaning |\n| --- | --- | --- | --- |\n${table.join("\n")}\n`;
}

function* below(path: string, node: SchemaNode): Generator<Row> {
  for (const variant of variants(node)) {
    for (const [name, child] of Object.entries(variant.properties ?? {})) {
      yield* rows(`${path}.${name}`, child, variant.required?.includes(name) ?? false);
    }
    if (variant.items !== undefined) yield* below(`${path}[]`, variant.items);
    if (typeof variant.additionalProperties === "object") yield* below(`${path}.<name>`, variant.additionalProperties);
  }
}

function* rows(key: string, node: SchemaNode, required: boolean): Generator<Row> {
  const inner = [...below(key, node)];
  const leaf = variants(node).some(({ properties }) => properties === undefined);
  if (leaf || node.description !== undefined) {
    yield {
      key,
      allowed: cell(allowedText(variants(node))),
      fallback: required ? "required" : fallback(node),
      description: cell(node.description ?? ""),
    };
  }
  yield* inner;
}

function fallback(node: SchemaNode): string {
  return node.default === undefined ? "—" : `\`${JSON.stringify(node.default)}\``;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
