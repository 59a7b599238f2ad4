import type { PlanFlags } from "#src/simulator/plan.ts";

/** One row of the table: a workload on a fleet, and who is compared on it. */
export interface Case {
  readonly key: string;
  readonly title: string;
  /** Files of the trace directory; null: made requests. */
  readonly trace: string | null;
  readonly flags: Partial<PlanFlags>;
  /** Only requests of this class are sent: what the class gets alone. */
  readonly onlyClass?: string;
  /** Options of the baselines are sought on this case; null: nobody but Kvasir takes part. */
  readonly tunedOn: string | null;
}

const CONVERSATION = "conversation_trace.jsonl";
const SYNTHETIC = "synthetic_trace.jsonl";
const AZURE_CODE = "AzureLLMInferenceTrace_code.csv";

/** Below the knee, and at it. */
export const RATES = [1, 1.5, 2.2, 2.6] as const;
const TUNED_RATE: Readonly<Record<number, number>> = { 1: 1.5, 1.5: 1.5, 2.2: 2.2, 2.6: 2.2 };

function traceCases(name: string, title: string, trace: string): Case[] {
  return RATES.map((rate) => ({
    key: `${name}-${rate}`,
    title: `${title}, rate ${rate}`,
    trace,
    flags: { rate: [rate] },
    tunedOn: `${name}-${TUNED_RATE[rate]!}`,
  }));
}

/** One and a half times what the fleet can do of this mixture: at rate 2.3 the engines are just busy all the time. */
const OVERLOAD = 3.45;
const OVERLOADED: Partial<PlanFlags> = {
  rate: [OVERLOAD],
  classes: "interactive:0.1,batch:0.9",
  // Batch work has no reason to give up; nothing may be lost or starve.
  queueMs: 4 * 3_600_000,
  queueRequests: 100_000,
};

/** Chats with long answers, on engines of which some have few batch slots. */
const SLOTS: Partial<PlanFlags> = { shape: "chat", requests: 12_000, perSecond: 14 };

export const ROUTER_COUNTS = [1, 2, 4, 8] as const;

export const CASES: readonly Case[] = [
  ...traceCases("conversation", "Mooncake conversation", CONVERSATION),
  ...traceCases("synthetic", "Mooncake synthetic", SYNTHETIC),
  { key: "azure-code", title: "Azure code", trace: AZURE_CODE, flags: { rate: [6] }, tunedOn: "azure-code" },
  {
    key: "half-slow",
    title: "Mooncake conversation, half the replicas 2× slower",
    trace: CONVERSATION,
    flags: { rate: [1], slow: "0.5x4" },
    tunedOn: "half-slow",
  },
  {
    key: "overload",
    title: "Mooncake conversation at 1.5× of capacity, 10% interactive, 90% batch",
    trace: CONVERSATION,
    flags: OVERLOADED,
    tunedOn: "conversation-2.2",
  },
  {
    key: "overload-interactive-alone",
    title: "of these, the interactive ones alone",
    trace: CONVERSATION,
    flags: OVERLOADED,
    onlyClass: "interactive",
    tunedOn: null,
  },
  {
    key: "overload-batch-alone",
    title: "of these, the batch ones alone",
    trace: CONVERSATION,
    flags: OVERLOADED,
    onlyClass: "batch",
    tunedOn: null,
  },
  {
    key: "slots-few",
    title: "one of eight replicas has 8 batch slots: few connections, full batch",
    trace: null,
    flags: SLOTS,
    tunedOn: "slots-few",
  },
  {
    key: "slots-many",
    title: "seven of eight replicas have 8 batch slots: many connections, free slots",
    trace: null,
    flags: { ...SLOTS, perSecond: 7 },
    tunedOn: "slots-many",
  },
  ...ROUTER_COUNTS.map((routers): Case => ({
    key: `routers-${routers}`,
    title: `Mooncake conversation, rate 1.5, ${routers === 1 ? "one router" : `${routers} routers`}, KV events, metrics 1 s old`,
    trace: CONVERSATION,
    flags: { rate: [1.5], routers, events: true, scrapeDelayMs: 1_000 },
    tunedOn: null,
  })),
];

/** Engines of a case that have fewer batch slots than the others, by their place in the fleet. */
export const FEW_SLOTS = 8;
export const FEW_SLOT_ENGINES: Readonly<Record<string, (engine: number) => boolean>> = {
  "slots-few": (engine) => engine === 0,
  "slots-many": (engine) => engine !== 0,
};
