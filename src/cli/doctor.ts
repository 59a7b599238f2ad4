import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline/promises";
import { Command } from "commander";
import { ConfigError } from "#src/config/configError.ts";
import { configFrom, loadConfig } from "#src/config/loadConfig.ts";
import type { Config } from "#src/config/schema.ts";
import { processTimers } from "#src/determinism/timers.ts";
import { endpointsOf } from "#src/doctor/endpoints.ts";
import { examine } from "#src/doctor/examine.ts";
import { DEFAULT_LOOK_LIMITS } from "#src/doctor/look/lookTools.ts";
import { jsonReport } from "#src/doctor/report/jsonReport.ts";
import { textReport } from "#src/doctor/report/textReport.ts";
import { exitCodeOf } from "#src/doctor/report/verdict.ts";
import { modelTokenizers } from "#src/doctor/modelTokenizers.ts";
import { createAskEngine } from "#src/engines/engineClient.ts";
import { zmqSockets } from "#src/engines/events/stream/zmqSockets.ts";

interface DoctorFlags {
  readonly config?: string;
  readonly engine: readonly string[];
  readonly json: boolean;
  readonly strict: boolean;
  /** Undefined: ask, if there is somebody to ask. */
  readonly probe?: boolean;
}

const EXIT_COULD_NOT_RUN = 2;
const COLUMNS = 100;

export function doctorCommand(): Command {
  return new Command("doctor")
    .description("look at running engines for what would degrade routing, and name what mends it")
    .option("-c, --config <file>", "configuration file; without it, the engines below")
    .option("-e, --engine <url>", "an engine, e.g. http://10.0.0.1:8000; may be repeated", collect, [])
    .option("--json", "print the findings as JSON", false)
    .option("--strict", "exit with 1 for warnings too", false)
    .option("--probe", "send each engine one short completion, twice, without asking first")
    .option("--no-probe", "send no completions: nothing that takes GPU time")
    .addHelpText(
      "after",
      "\nExit codes: 0 no errors, 1 errors were found, 2 it could not run.\n" +
        "Example: kvasir doctor --engine http://10.0.0.1:8000 --engine http://10.0.0.2:8000",
    )
    .action(async (flags: DoctorFlags) => {
      try {
        process.exitCode = await doctor(flags);
      } catch (caught) {
        console.error(caught instanceof Error ? caught.message : String(caught));
        process.exitCode = EXIT_COULD_NOT_RUN;
      }
    });
}

/** Returns the exit code. Rejects if there is nothing to look at. */
async function doctor(flags: DoctorFlags): Promise<number> {
  const config = await configOf(flags);
  const { endpoints, problems } = await endpointsOf(config);
  for (const [source, why] of problems) console.error(`${source}: ${why}`);
  if (endpoints.length === 0) throw new ConfigError(["No engines are known: there is nothing to look at."]);
  const ca = await authorityOf(config);
  const examination = await examine(endpoints, Object.keys(config.models), {
    timers: processTimers,
    wallMs: Date.now,
    open: ({ url, apiKey }) => createAskEngine({ url, apiKey, tls: { ca } }),
    sockets: zmqSockets,
    tokenizers: modelTokenizers(config.models),
    limits: DEFAULT_LOOK_LIMITS,
    nonce: (await mayProbe(flags, endpoints.length)) ? randomBytes(12).toString("hex") : null,
  });
  const { stdout, env } = process;
  const colour = stdout.isTTY && (env["NO_COLOR"] ?? "") === "";
  const columns = stdout.isTTY ? stdout.columns : COLUMNS;
  stdout.write(flags.json ? `${jsonReport(examination)}\n` : textReport(examination, { colour, columns }));
  return exitCodeOf(examination.findings, flags.strict);
}

async function configOf({ config, engine }: DoctorFlags): Promise<Config> {
  if (config === undefined) return configFrom({ engines: [...engine] });
  if (engine.length > 0) throw new ConfigError(["With -c, the engines are in the file: --engine cannot be given."]);
  return loadConfig(config, process.env);
}

async function authorityOf({ engineTls: { caFile } }: Config): Promise<string | null> {
  return caFile === undefined ? null : await readFile(caFile, "utf8");
}

/** Whoever runs this from a script has decided already. */
async function mayProbe({ probe, json }: DoctorFlags, engines: number): Promise<boolean> {
  if (probe !== undefined || json || !process.stdin.isTTY || !process.stdout.isTTY) return probe ?? true;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const question = `Each of ${engines} engines gets a short prompt twice, for one token. Without it, cached tokens and the flow of events are not checked. Go on? [Y/n] `;
  try {
    return !/^\s*n/i.test(await terminal.question(question));
  } finally {
    terminal.close();
  }
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}
