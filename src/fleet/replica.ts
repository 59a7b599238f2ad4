import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import type { EngineMetrics } from "#src/engines/vocabulary.ts";
import { AdapterSet } from "./adapterSet.ts";
import { CachePrediction } from "./cachePrediction.ts";
import type { Health } from "./health.ts";
import type { LatencyModel } from "./latencyModel.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { ReplicaLoad } from "./replicaLoad.ts";

/** How many a replica takes. */
export interface ReplicaLimits {
  readonly maxRunningRequests: number;
  readonly kvCapacityTokens: number;
  readonly kvBlockTokens: number;
  /** Which of the first two nobody has told, named as the configuration's keys. */
  readonly assumed: readonly ("maxRunningRequests" | "kvCapacityTokens")[];
}

/**
 * For an engine that publishes nothing: vLLM's default slots and block, and the KV that an 8B model leaves on an 80 GB
 * GPU (about 60 GB at 128 KiB a token).
 */
const ASSUMED_LIMITS: ReplicaLimits = {
  maxRunningRequests: 256,
  kvCapacityTokens: 450_000,
  kvBlockTokens: 16,
  assumed: ["maxRunningRequests", "kvCapacityTokens"],
};

/**
 * Share of the slots that must be free for a request of many sequences, such as a list of prompts. What does not fit
 * waits in the engine; to wait here until all fit would hold up everybody behind it, and in a busy fleet for ever.
 */
const SLOTS_FOR_MANY = 1 / 8;

/** `host:port`, or `host:port#rank` for one of several data-parallel ranks. */
export function replicaId(endpointName: string, rank: number | null): string {
  return rank === null ? endpointName : `${endpointName}#${rank}`;
}

/** One engine endpoint, or one data-parallel rank of it, and all that is known of it. Only the fleet changes it. */
export class Replica {
  readonly id: string;
  /** Small and reused after removal: key of typed arrays. Valid together with `incarnation` only. */
  readonly index: number;
  /** Unique over the fleet's life: no two replicas and no two lives of one replica share a number. */
  incarnation: number;
  removed = false;
  endpoint: EngineEndpoint;
  readonly rank: number | null;
  profile: EngineProfile | null = null;
  metrics: { readonly value: EngineMetrics; readonly atMs: number } | null = null;
  load = new ReplicaLoad();
  readonly latency: LatencyModel;
  readonly health: Health;
  readonly adapters = new AdapterSet();
  cachePrediction = new CachePrediction();
  /** Longest prompt plus output by model name, where the engine says. */
  maxModelTokens: ReadonlyMap<string, number> = new Map();
  #limits: ReplicaLimits = ASSUMED_LIMITS;

  constructor(made: {
    id: string;
    index: number;
    incarnation: number;
    endpoint: EngineEndpoint;
    rank: number | null;
    latency: LatencyModel;
    health: Health;
  }) {
    this.id = made.id;
    this.index = made.index;
    this.incarnation = made.incarnation;
    this.endpoint = made.endpoint;
    this.rank = made.rank;
    this.latency = made.latency;
    this.health = made.health;
  }

  get labels(): EngineEndpoint["labels"] {
    return this.endpoint.labels;
  }

  get lifecycle(): Lifecycle {
    return this.health.lifecycle;
  }

  limits(): ReplicaLimits {
    return this.#limits;
  }

  setProfile(profile: EngineProfile): void {
    this.profile = profile;
    this.adapters.setLoadable(profile.models.filter(({ parent }) => parent !== null).map(({ id }) => id));
    this.maxModelTokens = new Map(
      profile.models.flatMap(({ id, maxModelTokens }) => (maxModelTokens === null ? [] : [[id, maxModelTokens]])),
    );
  }

  /** What the operator says first, then metrics, then the profile, then the assumption; to be called after either has changed. */
  refreshLimits(): void {
    const { profile } = this;
    const value = this.metrics?.value;
    const { endpoint } = this;
    const known = {
      maxRunningRequests: endpoint.maxRunningRequests ?? value?.maxRunningRequests ?? profile?.maxRunningRequests,
      kvCapacityTokens: endpoint.kvCapacityTokens ?? value?.kvCapacityTokens ?? profile?.kvCapacityTokens,
    };
    const kvBlockTokens = value?.kvBlockTokens ?? profile?.kvBlockTokens ?? null;
    this.#limits = {
      maxRunningRequests: known.maxRunningRequests ?? ASSUMED_LIMITS.maxRunningRequests,
      kvCapacityTokens: known.kvCapacityTokens ?? ASSUMED_LIMITS.kvCapacityTokens,
      kvBlockTokens: kvBlockTokens ?? ASSUMED_LIMITS.kvBlockTokens,
      assumed: ASSUMED_LIMITS.assumed.filter((key) => (known[key] ?? null) === null),
    };
  }

  /** Whether the engine takes more requests at all, be it into a queue of its own. */
  accepts(nowMs: number): boolean {
    if (this.health.held(nowMs)) return false;
    return this.load.requests < this.health.window || this.load.slotsTaken(nowMs) === 0;
  }

  /** Whether batch slots are free for `sequences` more, and the engine has not asked to be left alone. */
  hasRoom(sequences: number, nowMs: number): boolean {
    if (this.health.held(nowMs)) return false;
    const taken = this.load.slotsTaken(nowMs);
    if (taken === 0) return true;
    const { maxRunningRequests } = this.#limits;
    return (
      taken + slotsNeeded(sequences, maxRunningRequests) <= maxRunningRequests &&
      this.load.requests < this.health.window
    );
  }
}

/** Slots that must be free for a request of so many sequences. */
export function slotsNeeded(sequences: number, slots: number): number {
  return Math.min(sequences, Math.max(1, Math.floor(slots * SLOTS_FOR_MANY)));
}
