import { Command } from "commander";
import { CONDITION_GUIDE } from "#src/fleet/conditionGuide.ts";
import { Metrics } from "#src/telemetry/metrics.ts";
import { REQUEST_FIELDS } from "#src/telemetry/requestFields.ts";

export function referenceCommand(): Command {
  return new Command("reference")
    .description("print all metrics, conditions and log fields as Markdown, as in docs/reference.md")
    .action(() => console.log(reference()));
}

/** The tables of docs/reference.md, straight from the code. */
export function reference(): string {
  const conditions = Object.entries(CONDITION_GUIDE).map(([key, { meaning, mend }]) => [code(key), meaning, mend]);
  const fields = Object.entries(REQUEST_FIELDS).map(([name, meaning]) => [code(name), meaning]);
  return [
    "## Metrics",
    table(["metric", "type", "labels", "meaning"], metricRows()),
    "## Conditions",
    table(["condition", "what it means", "what to do"], conditions),
    "## Fields of a request's log line",
    table(["field", "meaning"], fields),
  ].join("\n\n");
}

/** What prom-client's own metrics and this project's families both have; its typings hide it. */
interface Described {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

function metricRows(): string[][] {
  const metrics = new Metrics();
  try {
    const described = metrics.registry.getMetricsAsArray() as unknown as readonly Described[];
    return described.map(({ name, type, labelNames, help }) => [
      code(name),
      type,
      labelNames.map(code).join(", "),
      help,
    ]);
  } finally {
    metrics.close();
  }
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => "---"), ...rows];
  return lines.map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`).join("\n");
}

function code(text: string): string {
  return `\`${text}\``;
}
