import { PREDEFINED_CLASSES } from "#src/scheduler/classes.ts";
import type { ServiceClass } from "#src/scheduler/classes.ts";
import { QUEUE_LIMITS } from "#src/scheduler/queueLimits.ts";
import type { ComparisonPlan } from "./comparison.ts";
import { engineSetups, parseGpus, parseSlow, parseSpeculation, SpecError } from "./fleetSpec.ts";
import { parseRouter, parseShares } from "./routerSpec.ts";
import { readScenario } from "./scenario.ts";
import { readTrace } from "./traces/readTrace.ts";
import { conversations } from "./workload/conversations.ts";
import type { Senders } from "./workload/mix.ts";
import { SHAPES } from "./workload/shapes.ts";
import type { ShapeName } from "./workload/shapes.ts";
import { closedLoop, openLoop } from "./workload/traceWorkload.ts";

/** The command's flags, as `kvasir simulate --help` describes them. */
export interface PlanFlags {
  readonly trace?: string;
  readonly limit?: number;
  readonly onlyModel?: string;
  readonly shape?: ShapeName;
  readonly requests: number;
  readonly perSecond: number;
  readonly rate: readonly number[];
  readonly closed?: number;
  readonly classes: string;
  readonly tenants: string;
  readonly adapters: string;
  readonly tellOutputLimit: boolean;
  readonly replicas: number;
  readonly gpu: string;
  readonly model: string;
  readonly slow?: string;
  readonly scenario?: string;
  readonly maxNumSeqs: number;
  readonly maxNumBatchedTokens: number;
  readonly kvTokens?: number;
  readonly blockSize: number;
  readonly prefixCaching: boolean;
  readonly maxLoras: number;
  readonly loraLoadMs: number;
  readonly speculation?: string;
  readonly policy: string;
  readonly routers: number;
  readonly identityBlocks: number;
  readonly events: boolean;
  readonly eventDelayMs: number;
  readonly eventLoss: number;
  readonly eventReplayMs: number;
  readonly queueMs: number;
  readonly queueRequests: number;
  readonly retries: number;
  readonly scrapeMs: number;
  readonly scrapeDelayMs: number;
  readonly scrapeLoss: number;
  readonly healthMs: number;
  readonly networkMs: number;
  readonly seeds: number;
  readonly firstSeed: number;
  readonly ttftTarget: number;
  readonly tpotTarget: number;
}

/** What the flags ask for. Throws SpecError, TraceError or PolicyOptionError for what cannot be done. */
export function planOf(flags: PlanFlags): ComparisonPlan {
  const engines = engineSetups(
    parseGpus(flags.gpu, flags.replicas),
    flags.slow === undefined ? null : parseSlow(flags.slow),
    flags.model,
    {
      kvTokens: flags.kvTokens ?? null,
      blockTokens: flags.blockSize,
      maxRunning: flags.maxNumSeqs,
      maxBatchedTokens: flags.maxNumBatchedTokens,
      policy: "fcfs",
      prefixCaching: flags.prefixCaching,
      maxResidentAdapters: flags.maxLoras,
      adapterLoadMs: flags.loraLoadMs,
    },
    flags.speculation === undefined ? null : parseSpeculation(flags.speculation),
  );
  const senders: Senders = {
    classes: parseShares(flags.classes),
    tenants: parseShares(flags.tenants),
    adapters: flags.adapters === "" ? [] : parseShares(flags.adapters),
  };
  const classes = classesOf(flags);
  for (const { name } of senders.classes)
    if (!classes.some((known) => known.name === name))
      throw new SpecError(`there is no class "${name}"; there are ${classes.map((known) => known.name).join(", ")}`);
  const { adapters, ...workloads } = workloadsOf(flags, senders);
  return {
    settings: {
      model: flags.model,
      engines,
      routers: flags.routers,
      monitor: {
        scrapeEveryMs: flags.scrapeMs,
        scrapeDelayMs: flags.scrapeDelayMs,
        scrapeLossShare: flags.scrapeLoss,
        healthEveryMs: flags.healthMs,
      },
      networkMs: flags.networkMs,
      maxRetries: flags.retries,
      // Bodies have no bytes here.
      queue: {
        ...QUEUE_LIMITS,
        maxRequests: flags.queueRequests,
        maxWaitMs: flags.queueMs,
        maxBytes: Number.POSITIVE_INFINITY,
      },
      classes,
      adapters: [...new Set([...senders.adapters.map(({ name }) => name), ...adapters])],
      events: flags.events
        ? { delayMs: flags.eventDelayMs, lossShare: flags.eventLoss, replayMs: flags.eventReplayMs }
        : null,
      identityTokens: flags.events ? flags.blockSize : flags.identityBlocks * flags.blockSize,
      tellsOutputLimit: flags.tellOutputLimit,
      incidents: flags.scenario === undefined ? [] : readScenario(flags.scenario, engines.length),
      sampleEveryMs: 1_000,
    },
    routers: flags.policy.split(",").map(parseRouter),
    rates: flags.closed === undefined ? flags.rate : [1],
    seeds: Array.from({ length: flags.seeds }, (_, at) => flags.firstSeed + at),
    ...workloads,
  };
}

/** `adapters`: those that the trace names. */
function workloadsOf(
  flags: PlanFlags,
  senders: Senders,
): Pick<ComparisonPlan, "workload" | "fixedOrder"> & { readonly adapters: readonly string[] } {
  const { trace: path, shape, closed, requests, perSecond } = flags;
  if ((path === undefined) === (shape === undefined)) throw new SpecError("give either --trace or --shape");
  if (path === undefined) {
    if (closed !== undefined) throw new SpecError("--closed needs a --trace; conversations are a closed loop already");
    return {
      workload: (rate, seed) => conversations(SHAPES[shape!], { perSecond: perSecond * rate, requests, senders, seed }),
      fixedOrder: false,
      adapters: [],
    };
  }
  const trace = readTrace(path, flags.limit, flags.onlyModel);
  const adapters = trace.rows.flatMap(({ sender }) => sender?.adapter ?? []);
  if (closed !== undefined)
    return { workload: (_rate, seed) => closedLoop(trace, closed, senders, seed), fixedOrder: false, adapters };
  return { workload: (rate, seed) => openLoop(trace, rate, senders, seed), fixedOrder: true, adapters };
}

function classesOf({ ttftTarget, tpotTarget }: PlanFlags): readonly ServiceClass[] {
  return PREDEFINED_CLASSES.map((each) =>
    each.name === "standard" ? { ...each, ttftTargetMs: ttftTarget, tpotTargetMs: tpotTarget } : each,
  );
}
