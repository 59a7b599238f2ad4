import type { Examination } from "../examine.ts";
import type { Finding, Severity } from "../findings/finding.ts";
import { isSeen, type Sighting } from "../sighting.ts";
import { countFindings } from "./verdict.ts";
import { wrap } from "./wrap.ts";

const COLOURS: Readonly<Record<Severity, number>> = { error: 31, warn: 33, info: 36 };
const ORDER: readonly Severity[] = ["error", "warn", "info"];

export interface TextOptions {
  readonly colour: boolean;
  readonly columns: number;
}

/** The examination for a terminal: engine by engine, the worst first, then what concerns several. */
export function textReport({ sightings, findings }: Examination, { colour, columns }: TextOptions): string {
  const paint = (code: number, text: string): string => (colour ? `\u001B[${code}m${text}\u001B[0m` : text);
  const blocks = sightings.map((sighting) => {
    const own = findings.filter(({ replica }) => replica === sighting.endpoint.name);
    return [paint(1, headOf(sighting)), ...sorted(own).flatMap((finding) => linesOf(finding, columns, paint))];
  });
  const common = findings.filter(({ replica }) => replica === null);
  for (const model of new Set(common.map((finding) => finding.model))) {
    const own = common.filter((finding) => finding.model === model);
    blocks.push([paint(1, `model ${model}`), ...sorted(own).flatMap((finding) => linesOf(finding, columns, paint))]);
  }
  return `${[...blocks.map((lines) => lines.join("\n")), summary(sightings, findings)].join("\n\n")}\n`;
}

function headOf(sighting: Sighting): string {
  const { name } = sighting.endpoint;
  if (!isSeen(sighting)) return name;
  const { kind, version, models, dataParallelRanks: ranks } = sighting.profile;
  const base = models.filter(({ parent }) => parent === null).map(({ id }) => id);
  return [name, kind, version ?? "", ...(ranks > 1 ? [`${ranks} ranks`] : []), base.join(", ")].join("  ");
}

function linesOf(finding: Finding, columns: number, paint: (code: number, text: string) => string): string[] {
  const { id, severity, message, effect, mend } = finding;
  const paragraphs = [message, `Effect: ${effect}`, ...(mend === null ? [] : [`Mend: ${mend}`])];
  return [
    `  ${paint(COLOURS[severity], severity.padEnd(5))}  ${paint(1, id)}`,
    ...paragraphs.flatMap((text) => wrap(text, columns - 9)).map((line) => `         ${line}`),
  ];
}

function sorted(findings: readonly Finding[]): Finding[] {
  return [...findings].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
}

function summary(sightings: readonly Sighting[], findings: readonly Finding[]): string {
  const { error, warn, info } = countFindings(findings);
  const engines = counted(sightings.length, "engine");
  if (findings.length === 0) return `${engines}: nothing found.`;
  return `${engines}: ${counted(error, "error")}, ${counted(warn, "warning")}, ${counted(info, "note")}.`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
