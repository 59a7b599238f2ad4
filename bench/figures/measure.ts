import { join } from "node:path";
import { simulateCommand } from "#src/cli/simulate.ts";
import type { ComparisonPlan } from "#src/simulator/comparison.ts";
import { planOf } from "#src/simulator/plan.ts";
import type { PlanFlags } from "#src/simulator/plan.ts";
import { FIGURES } from "#src/simulator/report/figures.ts";
import { PooledCache } from "#src/simulator/report/pooledCache.ts";
import { summarise } from "#src/simulator/report/summary.ts";
import { parseRouter } from "#src/simulator/routerSpec.ts";
import { run } from "#src/simulator/run.ts";
import type { Workload } from "#src/simulator/workload/arrival.ts";
import type { RequestRecord } from "#src/simulator/world/requestRecord.ts";
import { CASES, FEW_SLOTS, FEW_SLOT_ENGINES } from "./cases.ts";
import type { Case } from "./cases.ts";
import { Learning } from "./learning.ts";

/** One run. */
export interface Job {
  readonly caseKey: string;
  /** As `--policy` takes it. */
  readonly router: string;
  readonly seed: number;
  readonly traceDirectory: string;
  /** Take only so many of the trace's first requests; null: all. */
  readonly limit: number | null;
}

/** What a run gave: the simulator's figures by their keys, and a few more. */
export type Measures = Readonly<Record<string, number>>;

/**
 * Mooncake's prompts share prefixes in steps of 512 tokens, so that larger blocks than vLLM's 16 change next to nothing
 * (below 1% of mean TTFT), and runs take half the time.
 */
const BLOCK_TOKENS = 128;

const plans = new Map<string, ComparisonPlan>();

export function measure(job: Job): Measures {
  const known = CASES.find(({ key }) => key === job.caseKey);
  if (known === undefined) throw new Error(`there is no case ${job.caseKey}`);
  const plan = planFor(known, job);
  const router = parseRouter(job.router);
  const engines = plan.settings.engines.map((setup, at) =>
    FEW_SLOT_ENGINES[job.caseKey]?.(at) === true ? { ...setup, core: { ...setup.core, maxRunning: FEW_SLOTS } } : setup,
  );
  const blocks = engines.reduce((sum, { core }) => sum + core.kvBlocks, 0);
  const pooled = new PooledCache(blocks, BLOCK_TOKENS);
  const learning = new Learning(engines);
  const workload = ofClass(plan.workload(plan.rates[0]!, job.seed), known.onlyClass);
  const finished = run({ ...plan.settings, engines, router, seed: job.seed }, workload, {
    onArrival: ({ chain, record, router: { fleet } }) => {
      pooled.see(chain, record.promptTokens);
      learning.look(fleet, record.arrivedMs);
    },
  });
  const summary = summarise(finished, pooled.cachedShare);
  const { records } = finished.world;
  return {
    ...Object.fromEntries(FIGURES.map(({ key, of }) => [key, of(summary)])),
    learnedSeconds: learning.seconds,
    intoFullBatch: intoFullBatch(
      records,
      engines.map(({ core }) => core.maxRunning),
    ),
    ...Object.fromEntries(
      Object.entries(summary.classes).flatMap(([name, own]) => [
        [`ttftP90:${name}`, own.ttftMs.p90],
        [`answered:${name}`, own.answered / own.requests],
        [`tokensPerSecond:${name}`, tokensPerSecond(records.filter(({ className }) => className === name))],
      ]),
    ),
  };
}

function planFor({ key, trace, flags }: Case, { traceDirectory, limit }: Job): ComparisonPlan {
  const name = `${key} ${limit}`;
  let plan = plans.get(name);
  if (plan === undefined) {
    plan = planOf({
      ...simulateCommand().opts<PlanFlags>(),
      replicas: 8,
      gpu: "h200",
      model: "qwen3-32b",
      blockSize: BLOCK_TOKENS,
      identityBlocks: 1,
      ...(trace === null ? {} : { trace: join(traceDirectory, trace) }),
      ...flags,
      ...(limit === null ? {} : trace === null ? { requests: limit } : { limit }),
    });
    plans.set(name, plan);
  }
  return plan;
}

function ofClass(workload: Workload, className: string | undefined): Workload {
  if (className === undefined) return workload;
  return {
    ...workload,
    next() {
      for (let arrival = workload.next(); arrival !== null; arrival = workload.next())
        if (arrival.className === className) return arrival;
      return null;
    },
  };
}

/** Of the answered, until the last of them has ended. */
function tokensPerSecond(records: readonly RequestRecord[]): number {
  const answered = records.filter(({ ending }) => ending === "answered");
  const tokens = answered.reduce((sum, { promptTokens, outputTokens }) => sum + promptTokens + outputTokens, 0);
  const endMs = answered.reduce((last, { endedMs }) => Math.max(last, endedMs), 0);
  return tokens / (endMs / 1000);
}

/** Share of requests that met a full batch at their engine while another engine had a free slot. */
function intoFullBatch(records: readonly RequestRecord[], slots: readonly number[]): number {
  const moves = records
    .filter(({ engine, reachedMs }) => engine >= 0 && reachedMs >= 0)
    .flatMap(({ engine, reachedMs, endedMs }) => [
      { atMs: reachedMs, engine, by: 1 },
      { atMs: endedMs, engine, by: -1 },
    ])
    .sort((a, b) => a.atMs - b.atMs || a.by - b.by);
  const there = slots.map(() => 0);
  let wrong = 0;
  for (const { engine, by } of moves) {
    if (by === 1 && there[engine]! >= slots[engine]! && there.some((count, at) => count < slots[at]!)) wrong++;
    there[engine]! += by;
  }
  return wrong / records.length;
}
