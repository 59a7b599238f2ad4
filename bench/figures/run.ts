// Figures of routing on modelled engines, Kvasir beside every baseline, with what is to be reached.
//
//   npm run bench:figures -- --traces DIRECTORY [--only conversation] [--seeds 5] [--quick] [--write docs/figures.md]
//
// DIRECTORY holds conversation_trace.jsonl and synthetic_trace.jsonl of kvcache-ai/Mooncake and
// AzureLLMInferenceTrace_code.csv of Azure/AzurePublicDataset. The figures do not depend on the machine.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { Command } from "commander";
import { integer } from "#src/cli/flagValues.ts";
import { chosenCases, contest } from "./contest.ts";
import { caseTable, targetLines, targetTable } from "./markdown.ts";
import { Pool } from "./pool.ts";
import { judge } from "./targets.ts";

/** A quick look takes the beginning of each trace. */
const QUICK_REQUESTS = 2_500;
/** Options are sought with a seed that no comparison uses. */
const TUNING_SEED = 1_001;
const MARKS = ["targets", "cases"] as const;

interface Flags {
  readonly traces: string;
  readonly only?: string;
  readonly seeds: number;
  readonly firstSeed: number;
  readonly threads: number;
  readonly quick: boolean;
  readonly write?: string;
  readonly json?: string;
}

const flags = new Command("bench:figures")
  .requiredOption("--traces <directory>", "where the traces are")
  .option("--only <pattern>", "cases whose key matches")
  .option("--seeds <n>", "runs with different chance", integer(1, 100), 5)
  .option("--first-seed <n>", "seed of the first; the others follow", integer(0, 1_000_000), 1)
  .option("--threads <n>", "runs at a time", integer(1, 64), 2)
  .option("--quick", `two seeds, and the first ${QUICK_REQUESTS} requests of each trace`, false)
  .option("--write <file>", "put the tables between the marks of this Markdown file")
  .option("--json <file>", "write everything that was found")
  .parse()
  .opts<Flags>();

setPriority(10);
const cases = chosenCases(flags.only);
if (cases.length === 0) throw new Error(`no case matches ${flags.only}`);
for (const { trace } of cases)
  if (trace !== null && !existsSync(`${flags.traces}/${trace}`)) throw new Error(`${flags.traces} has no ${trace}`);
const seeds = Array.from({ length: flags.quick ? 2 : flags.seeds }, (_, at) => flags.firstSeed + at);
const startedMs = performance.now();
const outcomes = await contest(
  cases,
  { seeds, tuningSeed: TUNING_SEED, traceDirectory: flags.traces, limit: flags.quick ? QUICK_REQUESTS : null },
  new Pool(flags.threads),
  (done, of, { caseKey, router, seed }) => {
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
    const line = `${done} of ${of} runs, ${seconds} s: ${caseKey}, ${router}, seed ${seed}`;
    process.stderr.write(
      process.stderr.isTTY ? `\r\u001b[K${line}` : done % 20 === 0 || done === of ? `${line}\n` : "",
    );
  },
);
if (process.stderr.isTTY) process.stderr.write("\r\u001b[K");
const judged = judge(outcomes);
process.stdout.write(`${targetLines(judged)}\n`);
if (flags.json !== undefined) writeFileSync(flags.json, JSON.stringify({ seeds, judged, outcomes }, null, 1));
if (flags.write !== undefined) {
  const tables = { targets: targetTable(judged), cases: outcomes.map(caseTable).join("\n\n") };
  writeFileSync(flags.write, between(readFileSync(flags.write, "utf8"), tables));
}

function between(page: string, tables: Readonly<Record<(typeof MARKS)[number], string>>): string {
  return MARKS.reduce((text, mark) => {
    const begin = `<!-- ${mark} -->`;
    const end = `<!-- /${mark} -->`;
    const [before, rest] = text.split(begin);
    const after = rest?.split(end)[1];
    if (before === undefined || after === undefined) throw new Error(`${flags.write} has no ${begin} … ${end}`);
    return `${before}${begin}\n\n${tables[mark]}\n\n${end}${after}`;
  }, page);
}
