import type { EngineKind } from "../discovery/replicaSpec.ts";
import type { Fact, ScrapeResult, ServedModel } from "./vocabulary.ts";

/** One HTTP answer of an engine, read whole (bounded by the caller). */
export interface EngineAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Asks an engine something over HTTP; bounded in time and size; throws RouterError when unreachable. */
export type AskEngine = (
  path: string,
  options?: {
    method?: "GET" | "POST";
    headers?: Readonly<Record<string, string>>;
    body?: string;
    timeoutMs?: number;
    signal?: AbortSignal;
  },
) => Promise<EngineAnswer>;

/** What probing an engine found out. */
export interface EngineProfile {
  readonly kind: EngineKind;
  readonly version: string | null;
  readonly dataParallelRanks: number;
  readonly models: readonly ServedModel[];
  /** Slots, KV capacity and the like where only an information route tells them. */
  readonly maxRunningRequests: number | null;
  readonly kvCapacityTokens: number | null;
  readonly kvBlockTokens: number | null;
  readonly prefixCachingEnabled?: boolean | null;
}

/** One engine's dialect. All four pass the same contract suite, on recorded bytes. Stateless. */
export interface EngineAdapter {
  readonly kind: EngineKind;
  /** The profile if this is an engine of this kind, else null. Never throws for "something else answered". */
  probe(ask: AskEngine): Promise<EngineProfile | null>;
  /** Alive as far as the engine's own health route says. */
  health(ask: AskEngine): Promise<"ready" | "loading" | "unready">;
  models(ask: AskEngine): Promise<readonly ServedModel[]>;
  scrape(ask: AskEngine): Promise<ScrapeResult>;
  /** Header that pins a request to a data-parallel rank, or null if the engine has none. Lower case name. */
  rankHeader(rank: number): readonly [name: string, value: string] | null;
  /** Header under which the engine accepts the router's request id, or null. */
  readonly requestIdHeader: string | null;
  /** Whether a LoRA adapter is chosen by the body's `model` (else by an engine's own field). */
  readonly adapterByModelName: boolean;
  /** What the body's `model` must say to get this adapter of this base model; null where `model` cannot choose one. */
  modelNameFor(base: string, adapter: string): string | null;
  /** The metric names under which each fact is looked for, newest first: what an operator has to search when it is missing. */
  readonly factSources: Readonly<Partial<Record<Fact, readonly string[]>>>;
}
