import type { LatencyBasis } from "#src/fleet/latencyModel.ts";
import type { ReplicaLimits } from "#src/fleet/replica.ts";
import type { LoadView } from "#src/fleet/replicaLoad.ts";

/**
 * What choosing needs to know of a replica, and nothing more. The fleet's `Replica` is one as it stands; tests and
 * models of engines bring their own. Nothing here is written to.
 */
export interface PricedReplica {
  readonly id: string;
  readonly index: number;
  readonly incarnation: number;
  readonly load: PricedLoad;
  readonly latency: PricedLatency;
  readonly adapters: PricedAdapters;
  readonly metrics: ScrapedFacts | null;
  limits(): ReplicaLimits;
}

export interface PricedLoad {
  /** Requests that this router has there and that have not ended. */
  readonly requests: number;
  /** Own load and what others put there. May be one object, overwritten by the next call. */
  at(nowMs: number): LoadView;
  /** Output tokens until the first decoding request is expected to end; 0 where none decodes. */
  earliestRemainingTokens(): number;
}

/** Tokens in, milliseconds out. */
export interface PricedLatency {
  readonly basis: LatencyBasis;
  /** Fixed part of a prefill. */
  readonly prefillBaseMs: number;
  /** Linear part of a prefill, per thousand tokens. */
  readonly prefillMsPerKtok: number;
  prefillMs(newTokens: number, cachedTokens: number): number;
  stepMs(sequences: number, kvTokens: number): number;
}

export interface PricedAdapters {
  readonly basis: "metrics" | "modelled";
  isResident(adapter: string): boolean;
  /** Which adapter loading another one would push out; null while there is room. */
  readonly victim: string | null;
}

/** The part of the last scrape that choosing looks at, and when it was made. */
export interface ScrapedFacts {
  readonly atMs: number;
  readonly value: {
    readonly waitingRequests: number | null;
    /** Share of KV memory in use, 0..1. */
    readonly kvUsage: number | null;
    readonly prefixQueriedTokensTotal: number | null;
    readonly prefixHitTokensTotal: number | null;
  };
}
