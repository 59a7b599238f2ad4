import { writeFileSync } from "node:fs";
import { Command } from "commander";
import { ConfigError } from "#src/config/configError.ts";
import type { DecisionConfig } from "#src/gateway/decisionConfig.ts";
import { RecordingError } from "#src/recording/format/recordingError.ts";
import type { ReplayReport } from "#src/recording/replay/replay.ts";
import { compare, type Cell } from "#src/simulator/comparison.ts";
import { SpecError } from "#src/simulator/fleetSpec.ts";
import { tableText } from "#src/simulator/report/tableText.ts";
import { TraceError } from "#src/simulator/traces/traceRow.ts";
import { integer } from "./flagValues.ts";
import { otherDecisions, otherDecisionsText } from "./recorded/otherDecisions.ts";
import {
  changed,
  decideAgain,
  recordedTraffic,
  routerOf,
  simulated,
  type RecordedRun,
} from "./recorded/recordedRun.ts";
import { setting, type Setting } from "./recorded/settingFlag.ts";
import { SimulateProgress } from "./simulateProgress.ts";

interface ReplayFlags {
  readonly keyFile?: string;
  readonly policy?: string;
  readonly set: readonly Setting[];
  readonly simulate: boolean;
  readonly onlyModel?: string;
  readonly seeds: number;
  readonly json?: string;
}

const SAME = 0;
const DIFFERENT = 1;
const UNCHECKED = 2;

/** `kvasir replay`: recorded decisions, made again. */
export function replayCommand(): Command {
  return new Command("replay")
    .description("make the decisions of a recording again, and say where they are not the same")
    .argument("<file>", "any file of a recording (`record.file` of the configuration)")
    .option("--key-file <file>", "key of the recording; default: beside it, with .key added to its name")
    .option("--policy <name>", "say also what this policy would have done")
    .option(
      "--set <name=value>",
      "the same of a setting: an option of the policy, or limits.…; may be repeated",
      setting,
      [],
    )
    .option("--no-simulate", "leave out the simulation of what would have followed")
    .option("--only-model <name>", "of several models, whose requests to simulate")
    .option("--seeds <n>", "simulations with different chance", integer(1, 1_000), 3)
    .option("--json <file>", "write everything that was found")
    .addHelpText(
      "after",
      "\nExit status: 0 all decisions are the same, 1 one differs, 2 they could not be checked, or not all of them.",
    )
    .action(replay);
}

function replay(path: string, flags: ReplayFlags, command: Command): void {
  try {
    process.exitCode = run(path, flags);
  } catch (caught) {
    const isKnown = [RecordingError, ConfigError, TraceError, SpecError].some((kind) => caught instanceof kind);
    if (isKnown) command.error(`error: ${(caught as Error).message}`, { exitCode: UNCHECKED });
    throw caught;
  }
}

function run(path: string, flags: ReplayFlags): number {
  const again = decideAgain(path, flags.keyFile);
  const { report, recording } = again;
  console.log(reportText(report, recording.remarks).join("\n"));
  const asksOther = flags.policy !== undefined || flags.set.length > 0;
  const found = asksOther && report.difference === null ? whatIf(again, flags) : {};
  if (flags.json !== undefined)
    writeFileSync(flags.json, JSON.stringify({ ...report, remarks: recording.remarks, ...found }, null, 2));
  if (report.difference !== null) return DIFFERENT;
  return report.equal === 0 || report.unchecked > 0 ? UNCHECKED : SAME;
}

function whatIf(again: RecordedRun, flags: ReplayFlags): Record<string, unknown> {
  const other = changed(again.config, flags.policy, flags.set);
  const label = [flags.policy ?? "recorded", ...flags.set.map(([name, value]) => `${name}=${value}`)].join(" ");
  console.log(`\nWhat if: ${label}`);
  const asked = otherDecisions(again, other);
  const { agreed, disagreed, unlike, dearerMs, disagreements } = asked;
  console.log(otherDecisionsText(asked, again.report.firstMs).join("\n"));
  const cells = flags.simulate ? simulation(again, other, label, flags) : [];
  return { whatIf: { label, agreed, disagreed, unlike, dearerMs, disagreements, simulated: cells } };
}

function simulation(again: RecordedRun, other: DecisionConfig, label: string, flags: ReplayFlags): readonly Cell[] {
  const progress = new SimulateProgress(process.stderr);
  const cells = [again.config, other].flatMap((config, at) => {
    const recorded = recordedTraffic({ ...again, config }, flags.onlyModel);
    const router = routerOf(config, recorded.model, at === 0 ? "as recorded" : label);
    const seeds = Array.from({ length: flags.seeds }, (_, seed) => seed + 1);
    return compare(simulated(recorded, [router], seeds), { onProgress: (...state) => progress.show(...state) });
  });
  progress.end();
  console.log(`\nSimulated, with its own choices and what follows from them, on engines as fast as was learned:`);
  console.log(tableText(cells));
  return cells;
}

function reportText(report: ReplayReport, remarks: readonly string[]): string[] {
  const { requests, decisions, refusals, seconds, difference, equal, unchecked, startedMs, records } = report;
  const lines = [
    `Recorded from ${new Date(startedMs).toISOString()} on, for ${seconds.toFixed(1)} s: ` +
      `${requests} requests, ${decisions} decisions (${refusals} of them refusals), ${records} records.`,
    ...remarks.map((remark) => `Note: ${remark}.`),
  ];
  if (difference !== null)
    return [
      ...lines,
      `After ${equal} equal ones, a decision differs ${(difference.atMs / 1000).toFixed(3)} s in: ${difference.what}`,
      `  recorded: ${difference.recorded}`,
      `  now:      ${difference.made}`,
      ...difference.fields.map((field) => `  ${field}`),
    ];
  if (equal > 0) lines.push(`${equal} decisions were made again, byte for byte the same.`);
  if (unchecked > 0) lines.push(`${unchecked} decisions could not be checked: not all that led to them is recorded.`);
  if (equal === 0 && unchecked === 0) lines.push("It holds no decision.");
  return lines;
}
