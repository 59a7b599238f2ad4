import { parsePythonJson } from "#src/request/tokens/pythonJson.ts";
import { Template } from "#src/request/tokens/jinja/template.ts";
import type { Value } from "#src/request/tokens/jinja/values.ts";

export const NOW = new Date(2026, 2, 7, 14, 5, 9);

/** Renders a template with variables given as JSON text, read as Python reads it. */
export function render(source: string, variables: Readonly<Record<string, string>> = {}): string {
  const values = Object.entries(variables).map(([name, json]): [string, Value] => [name, parsePythonJson(json)]);
  return new Template(source).render(new Map(values), NOW);
}
