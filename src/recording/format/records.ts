import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import type { KvEventBatch } from "#src/engines/events/kvEvent.ts";
import type { KvLoss } from "#src/engines/events/kvEventListener.ts";
import type { EngineHealth } from "#src/engines/monitorListener.ts";
import type { EngineMetrics, ServedModel } from "#src/engines/vocabulary.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { AttemptOutcome, Usage } from "#src/scheduler/outcome.ts";

/** First byte of a record; with NESTED added, the depth follows. */
export const CODE = {
  section: 1,
  submit: 2,
  settled: 3,
  lost: 4,
  cancel: 5,
  firstToken: 6,
  progress: 7,
  heldUp: 8,
  finish: 9,
  wake: 10,
  shutdown: 11,
  configure: 12,
  fleetTick: 13,
  endpoints: 14,
  profile: 15,
  models: 16,
  health: 17,
  scrape: 18,
  endpointRestarted: 19,
  drain: 20,
  resume: 21,
  kvBatch: 22,
  kvLost: 23,
  kvRestarted: 24,
  kvLive: 25,
  kvFailed: 26,
  prefilled: 27,
} as const;
export const NESTED = 128;

export type RecordKind = keyof typeof CODE;

/** What a scrape told: as `ScrapeResult`, in a form that JSON carries. */
export interface RecordedScrape {
  readonly byRank: readonly (readonly [rank: number, metrics: EngineMetrics])[];
  readonly missing: readonly string[];
}

/** What is known of one endpoint when a section begins. */
export interface KnownEngine {
  readonly name: string;
  readonly profile: EngineProfile | null;
  readonly health: EngineHealth | null;
  readonly scrape: RecordedScrape | null;
}

/** What a reader needs to begin here: a section begins with each file, and where records had to be given up. */
export interface Section {
  readonly wallMs: number;
  /** On the clock of all other times. */
  readonly clockMs: number;
  /** Records that were given up just before: what follows cannot be decided again from what came before. */
  readonly dropped: number;
  /** Of the configuration what decisions depend on. */
  readonly settings: unknown;
  readonly endpoints: readonly (readonly [source: string, endpoints: readonly EngineEndpoint[]])[];
  readonly engines: readonly KnownEngine[];
}

export interface RecordedRow {
  readonly replicaId: string;
  readonly cachedTokens: number;
  /** Predicted milliseconds where the policy has prices, else its score; NaN: neither. */
  readonly figure: number;
}

/** A decision as far as it is kept: the digest stands for all of it. */
export interface RecordedDecision {
  readonly policy: string;
  readonly branch: string;
  readonly chosen: number;
  readonly priced: boolean;
  readonly rows: readonly RecordedRow[];
  readonly digest: readonly [number, number];
}

export interface Refused {
  readonly code: string;
  readonly retryAfterMs: number | null;
}

/** What came of a request: a place, numbered in order, or a refusal. */
export type Result =
  | { readonly placed: number; readonly decision: RecordedDecision }
  | { readonly placed: null; readonly refused: Refused };

/** Tickets and places are numbered from 0 in the order in which they came. `depth` 0: not from within another call. */
type Input<Kind extends RecordKind, Rest> = Kind extends RecordKind
  ? { readonly kind: Kind; readonly depth: number } & Rest
  : never;
type Timed = { readonly nowMs: number };
type OfPlace = Timed & { readonly place: number };
type OfEngine = Timed & { readonly engine: string };
type OfRank = OfEngine & { readonly rank: number };

export type InputRecord =
  | Input<
      "submit",
      Timed & {
        readonly ticket: number;
        /** `id` is made up. */
        readonly request: RouteRequest;
        readonly attempt: number;
        readonly sinceMs: number;
        readonly excluded: readonly string[];
        readonly streamed: boolean;
      }
    >
  | Input<"cancel", Timed & { readonly ticket: number }>
  | Input<"firstToken", OfPlace>
  | Input<"prefilled", OfPlace & { readonly usage: Usage | null }>
  | Input<"heldUp", { readonly place: number }>
  | Input<"progress", OfPlace & { readonly outputTokens: number }>
  | Input<"finish", OfPlace & { readonly outcome: AttemptOutcome }>
  | Input<"wake" | "fleetTick", Timed>
  | Input<"shutdown", unknown>
  | Input<"configure", { readonly settings: unknown }>
  | Input<"endpoints", Timed & { readonly source: string; readonly endpoints: readonly EngineEndpoint[] }>
  | Input<"profile", OfEngine & { readonly profile: EngineProfile }>
  | Input<"models", OfEngine & { readonly models: readonly ServedModel[] }>
  | Input<"health", OfEngine & { readonly health: EngineHealth }>
  | Input<"scrape", OfEngine & { readonly scrape: RecordedScrape }>
  | Input<"endpointRestarted", OfEngine>
  | Input<"drain" | "resume", Timed & { readonly replicaId: string }>
  | Input<"kvBatch", OfRank & { readonly batch: KvEventBatch }>
  | Input<"kvLost", OfRank & { readonly why: KvLoss }>
  | Input<"kvRestarted", OfRank>
  | Input<"kvLive", OfRank & { readonly complete: boolean }>
  | Input<"kvFailed", OfRank & { readonly why: string }>;

/** What was decided or told; everything else is what it was decided from. */
export type OutputRecord =
  | { readonly kind: "settled"; readonly ticket: number; readonly result: Result }
  | { readonly kind: "lost"; readonly place: number };

export type SectionRecord = { readonly kind: "section"; readonly section: Section };

export type RecordingRecord = InputRecord | OutputRecord | SectionRecord;
