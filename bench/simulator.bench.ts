import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { compare } from "#src/simulator/comparison.ts";
import { planOf } from "#src/simulator/plan.ts";
import type { PlanFlags } from "#src/simulator/plan.ts";

/**
 * How long one run takes: by default the whole of a Mooncake trace on eight replicas, with Kvasir's own policy. Asserts
 * that every request got an answer. Run by hand: `node bench/simulator.bench.ts conversation_trace.jsonl [--events]`.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    events: { type: "boolean", default: false },
    policy: { type: "string", default: "kvasir" },
    rate: { type: "string", default: "1" },
  },
});
const [trace] = positionals;
if (trace === undefined || !existsSync(trace)) throw new Error("name a Mooncake trace file");

const flags: PlanFlags = {
  trace,
  requests: 0,
  perSecond: 1,
  rate: [Number(values.rate)],
  classes: "standard",
  tenants: "anonymous",
  adapters: "",
  tellOutputLimit: false,
  replicas: 8,
  gpu: "h200",
  model: "qwen3-32b",
  maxNumSeqs: 256,
  maxNumBatchedTokens: 8192,
  blockSize: 16,
  prefixCaching: true,
  maxLoras: 1,
  loraLoadMs: 250,
  policy: values.policy,
  routers: 1,
  identityBlocks: 8,
  events: values.events,
  eventDelayMs: 1,
  eventLoss: 0,
  eventReplayMs: 100,
  queueMs: 30_000,
  queueRequests: 2_000,
  retries: 2,
  scrapeMs: 1_000,
  scrapeDelayMs: 0,
  scrapeLoss: 0,
  healthMs: 1_000,
  networkMs: 1,
  seeds: 1,
  firstSeed: 1,
  ttftTarget: 2_000,
  tpotTarget: 100,
};
const startedMs = performance.now();
const cpuBefore = process.cpuUsage();
const [cell] = compare(planOf(flags));
const wallMs = performance.now() - startedMs;
const cpu = process.cpuUsage(cpuBefore);
const { requests, answered, ttftMs, cachedShare } = cell!.summaries[0]!;
if (answered !== requests) throw new Error(`${requests - answered} of ${requests} requests got no answer`);
process.stdout.write(
  `${requests} requests in ${(wallMs / 1000).toFixed(1)} s, of which ${(cpu.user / 1e6).toFixed(1)} s on the processor; ` +
    `mean TTFT ${ttftMs.mean.toFixed(0)} ms, ${(100 * cachedShare).toFixed(1)}% cached\n`,
);
