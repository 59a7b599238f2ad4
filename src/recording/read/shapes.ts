import { z } from "zod";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import type { KvLoss } from "#src/engines/events/kvEventListener.ts";
import type { EngineHealth } from "#src/engines/monitorListener.ts";
import type { EngineMetrics, ServedModel } from "#src/engines/vocabulary.ts";
import { RecordingError } from "../format/recordingError.ts";
import type { Section } from "../format/records.ts";

/*
 * What the JSON parts of a recording look like. A recording may come from anybody, and what reads on relies on these.
 */

const count = z.int().min(0);
const some = z.number().nullable();

const EndpointShape = z.looseObject({
  url: z.string(),
  name: z.string(),
  engine: z.enum(["vllm", "sglang", "trtllm", "llamacpp"]).nullable(),
  role: z.enum(["mixed", "prefill", "decode", "draft"]),
  labels: z.record(z.string(), z.string()),
  apiKey: z.null(),
  dataParallelRanks: z.int().min(1).max(1024).nullable(),
  maxRunningRequests: z.int().min(1).optional(),
  kvCapacityTokens: z.int().min(1).optional(),
  prior: z.string().nullable(),
});

const ModelShape = z.object({ id: z.string(), parent: z.string().nullable(), maxModelTokens: some });

const ProfileShape = z.object({
  kind: z.enum(["vllm", "sglang", "trtllm", "llamacpp"]),
  version: z.string().nullable(),
  dataParallelRanks: z.int().min(0).max(1024),
  models: z.array(ModelShape),
  maxRunningRequests: some,
  kvCapacityTokens: some,
  kvBlockTokens: some,
  prefixCachingEnabled: z.boolean().nullable().optional(),
});

export const NO_METRICS: EngineMetrics = {
  runningRequests: null,
  waitingRequests: null,
  kvUsage: null,
  kvCapacityTokens: null,
  kvBlockTokens: null,
  maxRunningRequests: null,
  prefixQueriedTokensTotal: null,
  prefixHitTokensTotal: null,
  preemptionsTotal: null,
  promptTokensTotal: null,
  generatedTokensTotal: null,
  residentAdapters: null,
  maxResidentAdapters: null,
  draftTokensTotal: null,
  acceptedDraftTokensTotal: null,
  prefixCachingEnabled: null,
  asleep: null,
};

const Fact = z.union([z.number(), z.boolean(), z.array(z.string()), z.null()]);
const MetricsShape = z.record(z.string(), Fact).refine(
  (facts) =>
    Object.entries(facts).every(([fact, value]) => {
      if (!(fact in NO_METRICS) || value === null) return fact in NO_METRICS;
      if (fact === "residentAdapters") return Array.isArray(value);
      const isYesOrNo = fact === "prefixCachingEnabled" || fact === "asleep";
      return typeof value === (isYesOrNo ? "boolean" : "number");
    }),
  { message: "no such facts" },
);

const ScrapeShape = z.object({
  byRank: z.array(z.tuple([count, MetricsShape])).max(1024),
  missing: z.array(z.string()),
});

interface ChangedScrape {
  readonly byRank: readonly (readonly [rank: number, news: Partial<EngineMetrics>])[];
  readonly missing: readonly string[];
}

const HealthShape = z.enum(["ready", "loading", "unready", "silent", "unreachable"]);

const SectionShape = z.object({
  wallMs: z.number(),
  clockMs: z.number(),
  dropped: count,
  settings: z.unknown(),
  endpoints: z.array(z.tuple([z.string(), z.array(EndpointShape)])),
  engines: z.array(
    z.object({
      name: z.string(),
      profile: ProfileShape.nullable(),
      health: HealthShape.nullable(),
      scrape: ScrapeShape.nullable(),
    }),
  ),
});

/** What `schema` makes of it; throws RecordingError where that is nothing. */
function read(what: string, schema: z.ZodType, json: unknown): unknown {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new RecordingError(`this is no ${what}: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`);
}

export function endpoints(json: unknown): readonly EngineEndpoint[] {
  return read("list of engines", z.array(EndpointShape), json) as readonly EngineEndpoint[];
}

export function profile(json: unknown): EngineProfile {
  return read("profile of an engine", ProfileShape, json) as EngineProfile;
}

export function models(json: unknown): readonly ServedModel[] {
  return read("list of models", z.array(ModelShape), json) as readonly ServedModel[];
}

export function health(json: unknown): EngineHealth {
  return read("health of an engine", HealthShape, json) as EngineHealth;
}

/** Facts may be left out. */
export function scrape(json: unknown): ChangedScrape {
  return read("scrape", ScrapeShape, json) as ChangedScrape;
}

export function kvLoss(json: unknown): KvLoss {
  return read("loss of KV events", z.enum(["gap", "no_replay", "rebuild"]), json) as KvLoss;
}

export function section(json: unknown): Section {
  return read("beginning of a section", SectionShape, json) as Section;
}
