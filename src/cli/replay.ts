import { writeFileSync } from "node:fs";
import { Command } from "commander";
import { recordedSettings } from "#src/gateway/recordedSettings.ts";
import { RecordingError } from "#src/recording/format/recordingError.ts";
import { Recording } from "#src/recording/read/recording.ts";
import { Replay, type ReplayReport } from "#src/recording/replay/replay.ts";
import { RecordProgress } from "./recordProgress.ts";
import packageJson from "../../package.json" with { type: "json" };

interface ReplayFlags {
  readonly keyFile?: string;
  readonly json?: string;
}

/** `kvasir replay`: recorded decisions, made again. */
export function replayCommand(): Command {
  return new Command("replay")
    .description("make the decisions of a recording again, and say where they are not the same")
    .argument("<file>", "any file of a recording (`record.file` of the configuration)")
    .option("--key-file <file>", "key of the recording; default: beside it, with .key added to its name")
    .option("--json <file>", "write everything that was found")
    .addHelpText("after", "\nExit status: 0 all the same, 1 a decision differs, 2 it could not be checked.")
    .action(replay);
}

function replay(path: string, flags: ReplayFlags, command: Command): void {
  try {
    const recording = new Recording(path, flags.keyFile);
    decideAgain(recording, flags);
  } catch (caught) {
    if (caught instanceof RecordingError) command.error(`error: ${caught.message}`, { exitCode: 2 });
    throw caught;
  }
}

function decideAgain(recording: Recording, flags: ReplayFlags): void {
  const progress = new RecordProgress(process.stderr);
  const report = new Replay(recording, {
    settings: recordedSettings(),
    onProgress: (records) => progress.show(records),
  }).run();
  progress.end();
  const { version } = recording.first;
  if (version !== packageJson.version)
    recording.remarks.push(`recorded by Kvasir ${version}, decided again by ${packageJson.version}`);
  console.log(text(report, recording.remarks).join("\n"));
  if (flags.json !== undefined)
    writeFileSync(flags.json, JSON.stringify({ ...report, remarks: recording.remarks }, null, 2));
  if (report.difference !== null) process.exitCode = 1;
  else if (report.equal === 0 || report.unchecked > 0) process.exitCode = 2;
}

function text(report: ReplayReport, remarks: readonly string[]): string[] {
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
