import { writeFileSync } from "node:fs";
import { Command, InvalidArgumentError, Option } from "commander";
import { defaultOptions } from "#src/emulator/engineOptions.ts";
import { PolicyOptionError } from "#src/routing/options.ts";
import { PREDEFINED_CLASSES } from "#src/scheduler/classes.ts";
import { QUEUE_LIMITS } from "#src/scheduler/queueLimits.ts";
import { compare } from "#src/simulator/comparison.ts";
import type { ComparisonPlan } from "#src/simulator/comparison.ts";
import { SpecError } from "#src/simulator/fleetSpec.ts";
import { planOf } from "#src/simulator/plan.ts";
import type { PlanFlags } from "#src/simulator/plan.ts";
import { htmlReport } from "#src/simulator/report/htmlReport.ts";
import { jsonReport } from "#src/simulator/report/jsonReport.ts";
import { tableText } from "#src/simulator/report/tableText.ts";
import { TraceError } from "#src/simulator/traces/traceRow.ts";
import { SHAPES } from "#src/simulator/workload/shapes.ts";
import { integer, positive } from "./flagValues.ts";
import { SimulateProgress } from "./simulateProgress.ts";

interface SimulateFlags extends PlanFlags {
  readonly json?: string;
  readonly html?: string;
}

/** `kvasir simulate`: what routers would do with a workload, without engines. */
export function simulateCommand(): Command {
  return new Command("simulate")
    .description("play a workload against modelled engines, and compare policies")
    .optionsGroup("Workload:")
    .option("--trace <file>", "Mooncake or Bailian JSON lines, Azure or BurstGPT CSV, or a recording")
    .option("--only-model <name>", "of a recording with several models, whose requests to take")
    .option("--limit <n>", "take only the trace's first requests", integer(1, 5_000_000))
    .addOption(new Option("--shape <name>", "make conversations instead of a trace").choices(Object.keys(SHAPES)))
    .option("--requests <n>", "how many to make", integer(1, 5_000_000), 5_000)
    .option("--per-second <n>", "conversations that begin each second at rate 1", positive, 1)
    .option("--rate <x,…>", "play so many times as fast; several rates make several tables", numbers, [1])
    .option("--closed <n>", "so many clients, each sending when its last answer is there", integer(1, 1_000_000))
    .option("--classes <shares>", "service classes, drawn by weight: interactive:0.1,batch:0.9", "standard")
    .option("--tenants <shares>", "tenants, drawn by weight", "anonymous")
    .option("--adapters <shares>", "LoRA adapters, drawn by weight", "")
    .option("--tell-output-limit", "requests state their answer's length as its limit", false)
    .optionsGroup("Engines:")
    .option("--replicas <n>", "how many", integer(1, 1024), 8)
    .option("--gpu <gpu>", "h200, or groups: h200:4,h100:4", "h200")
    .option("--model <name>", "a model of the table of step times", defaultOptions.model)
    .option("--slow <group>", "replicas that are slower than the router is told: 0.5x2")
    .option("--scenario <file>", "crashes, cold starts and slow-downs, as JSON")
    .option("--max-num-seqs <n>", "sequences in a batch", integer(1, 65_536), defaultOptions.maxRunning)
    .option("--max-num-batched-tokens <n>", "tokens in a step", integer(1, 1_048_576), defaultOptions.maxBatchedTokens)
    .option("--kv-tokens <n>", "KV memory; default: what the model leaves of the GPU", integer(16, 100_000_000))
    .option("--block-size <n>", "tokens in a KV block", integer(1, 4096), defaultOptions.blockTokens)
    .option("--no-prefix-caching", "switch the engines' prefix caches off")
    .option("--max-loras <n>", "adapters in memory at a time", integer(1, 1024), defaultOptions.maxResidentAdapters)
    .option("--lora-load-ms <ms>", "what loading an adapter costs", positive, defaultOptions.adapterLoadMs)
    .option("--speculation <spec>", "drafted tokens a step, chance that one is right, ms to draft it: 3:0.7:0.4")
    .optionsGroup("Routers:")
    .option("--policy <name,…>", "what to compare; name@queued, name@immediate, name:option=value;…", "kvasir")
    .option("--routers <n>", "routers that share the engines and know nothing of each other", integer(1, 64), 1)
    .option("--identity-blocks <n>", "engine blocks that one hash of a prompt's identity covers", integer(1, 1024), 8)
    .option("--events", "engines tell what they cache; without, routers infer it from their own traffic", false)
    .option("--event-delay-ms <ms>", "how old events are when they come", notNegative, 1)
    .option("--event-loss <share>", "how many batches have to be asked for again", share, 0)
    .option("--event-replay-ms <ms>", "how much later these come", notNegative, 100)
    .option("--queue-ms <ms>", "longest wait in a router's queue", positive, QUEUE_LIMITS.maxWaitMs)
    .option("--queue-requests <n>", "most that wait there", integer(0, 1_000_000), QUEUE_LIMITS.maxRequests)
    .option("--retries <n>", "further attempts after an engine failed", integer(0, 16), 2)
    .option("--scrape-ms <ms>", "how often metrics are read", positive, 1_000)
    .option("--scrape-delay-ms <ms>", "how old they are when they come", notNegative, 0)
    .option("--scrape-loss <share>", "how many never come", share, 0)
    .option("--health-ms <ms>", "how often engines are probed", positive, 1_000)
    .option("--network-ms <ms>", "from a router to an engine", notNegative, 1)
    .optionsGroup("Report:")
    .option("--seeds <n>", "runs with different chance", integer(1, 1_000), 1)
    .option("--first-seed <n>", "seed of the first; the others follow", integer(0, 1_000_000), 1)
    .option("--ttft-target <ms>", "of the standard class", positive, standard.ttftTargetMs)
    .option("--tpot-target <ms>", "of the standard class", positive, standard.tpotTargetMs)
    .option("--json <file>", "write everything that was found")
    .option("--html <file>", "write a page with plots")
    .action(simulate);
}

const standard = PREDEFINED_CLASSES.find(({ name }) => name === "standard")!;

function simulate({ json, html, ...flags }: SimulateFlags, command: Command): void {
  const plan = understood(flags, command);
  const progress = new SimulateProgress(process.stderr);
  const cells = compare(plan, { onProgress: (...state) => progress.show(...state) });
  progress.end();
  console.log(tableText(cells));
  if (json !== undefined) writeFileSync(json, jsonReport(flags, cells));
  if (html !== undefined) writeFileSync(html, htmlReport(commandLine(flags), cells));
}

/** Ends the program with the reason where the flags ask for what cannot be. */
function understood(flags: PlanFlags, command: Command): ComparisonPlan {
  try {
    return planOf(flags);
  } catch (caught) {
    if (caught instanceof SpecError || caught instanceof TraceError || caught instanceof PolicyOptionError)
      command.error(`error: ${caught.message}`);
    throw caught;
  }
}

/** The command that gives the same again, defaults left out. */
function commandLine(flags: PlanFlags): string {
  const defaults = simulateCommand().opts<Record<string, unknown>>();
  const words = Object.entries(flags).flatMap(([key, value]) => {
    if (JSON.stringify(value) === JSON.stringify(defaults[key])) return [];
    if (key === "prefixCaching") return ["--no-prefix-caching"];
    const flag = `--${key.replaceAll(/[A-Z]/gu, (capital) => `-${capital.toLowerCase()}`)}`;
    return value === true ? [flag] : [`${flag} ${String(value)}`];
  });
  return ["kvasir simulate", ...words].join(" ");
}

function numbers(text: string): number[] {
  return text.split(",").map(positive);
}

function notNegative(text: string): number {
  return text.trim() === "0" ? 0 : positive(text);
}

function share(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= 0 && value <= 1)) throw new InvalidArgumentError("It must be from 0 to 1.");
  return value;
}
