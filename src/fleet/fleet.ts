import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import type { EngineMetrics, ScrapeResult, ServedModel } from "#src/engines/vocabulary.ts";
import { GENERIC_PRIOR, PRIORS } from "#src/hardware/stepTimes.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { Conditions } from "./conditions.ts";
import { eligibility } from "./eligibility.ts";
import type { Eligibility } from "./eligibility.ts";
import { Health } from "./health.ts";
import { LatencyModel } from "./latencyModel.ts";
import { Ledger } from "./ledger.ts";
import { LIFECYCLE_LIMITS } from "./lifecycle.ts";
import type { LifecycleLimits } from "./lifecycle.ts";
import { OutputLengths } from "./outputLengths.ts";
import { PrefixIndex } from "./prefixIndex.ts";
import { Replica, replicaId } from "./replica.ts";
import { ReplicaLoad } from "./replicaLoad.ts";
import { TokenDensity } from "./tokenDensity.ts";

export interface FleetOptions {
  readonly lifecycle?: Partial<LifecycleLimits>;
  readonly maxReplicas?: number;
  readonly maxReservations?: number;
  /** Metrics older than this are a condition. */
  readonly metricsStaleMs?: number;
}

/** What a probe of an endpoint's health route found. `refused`: nobody listens there. `hung`: no answer in time. */
export type HealthReport = "ready" | "loading" | "unready" | "refused" | "hung";

export type FleetChange =
  | { readonly kind: "added"; readonly replica: Replica }
  /** Requests there that got no byte yet must be placed again. */
  | { readonly kind: "removed"; readonly replica: Replica }
  /** Another process answers there now: everything of the old one is void. */
  | { readonly kind: "restarted"; readonly replica: Replica }
  | { readonly kind: "lifecycle"; readonly replica: Replica }
  | { readonly kind: "models"; readonly replica: Replica };

/** What a client's model name means in this fleet. */
export interface ResolvedModel {
  /** Name of the pool. */
  readonly model: string;
  readonly adapter: string | null;
}

/** All replicas, and everything known of them. Pure state: time is an argument, nothing is done by itself. */
export class Fleet {
  readonly ledger: Ledger;
  readonly index = new PrefixIndex();
  readonly outputLengths = new OutputLengths();
  readonly tokenDensity = new TokenDensity();
  readonly conditions = new Conditions();
  readonly #lifecycleLimits: LifecycleLimits;
  readonly #byId = new Map<string, Replica>();
  readonly #bySource = new Map<string, ReadonlyMap<string, EngineEndpoint>>();
  readonly #listeners = new Set<(change: FleetChange) => void>();
  #incarnations = 0;

  constructor(options: FleetOptions = {}) {
    this.ledger = new Ledger(options.maxReservations);
    this.#lifecycleLimits = { ...LIFECYCLE_LIMITS, ...options.lifecycle };
  }

  replicas(): readonly Replica[] {
    return [...this.#byId.values()];
  }

  byId(id: string): Replica | null {
    return this.#byId.get(id) ?? null;
  }

  /** Above every `replica.index`: the room that `heldBlocks` needs. */
  get indexBound(): number {
    return this.#byId.size;
  }

  /** Replicas that have the model, whatever their state. */
  pool(model: string): readonly Replica[] {
    return this.replicas().filter(({ profile }) => profile?.models.some(({ id }) => id === model) ?? false);
  }

  /** The fleet's models, joined by name. An adapter is there if one replica has it. */
  models(): readonly ServedModel[] {
    return this.replicas().flatMap(({ profile }) => profile?.models ?? []);
  }

  resolve(name: string): ResolvedModel | null {
    const found = this.models().find(({ id }) => id === name);
    if (found === undefined) return null;
    return found.parent === null ? { model: name, adapter: null } : { model: found.parent, adapter: name };
  }

  eligible(request: RouteRequest, excluded: ReadonlySet<string>, nowMs: number): Eligibility {
    return eligibility(request, this.pool(request.model), excluded, nowMs);
  }

  /** The complete set of endpoints that one source sees now. */
  applyEndpoints(source: string, endpoints: readonly EngineEndpoint[], nowMs: number): void {
    this.#bySource.set(source, new Map(endpoints.map((one) => [one.name, one])));
    for (const endpoint of endpoints) {
      if (this.#byId.has(endpoint.name)) continue;
      const prior = endpoint.prior === null ? undefined : PRIORS.get(endpoint.prior);
      const replica = new Replica({
        id: replicaId(endpoint.name, null),
        index: this.#byId.size,
        incarnation: ++this.#incarnations,
        endpoint,
        rank: null,
        latency: new LatencyModel(prior ?? GENERIC_PRIOR, prior === undefined ? "generic" : "prior"),
        health: new Health(nowMs, this.#lifecycleLimits),
      });
      this.#byId.set(replica.id, replica);
      this.#tell({ kind: "added", replica });
    }
  }

  /** What probing an endpoint found; sets the models too. */
  applyProfile(endpointName: string, profile: EngineProfile, nowMs: number): void {
    void nowMs;
    for (const replica of this.ofEndpoint(endpointName)) {
      replica.profile = profile;
      replica.adapters.setLoadable(profile.models.filter(({ parent }) => parent !== null).map(({ id }) => id));
      replica.refreshLimits();
      this.#tell({ kind: "models", replica });
    }
  }

  /** A later model list of the endpoint. */
  applyModels(endpointName: string, models: readonly ServedModel[], nowMs: number): void {
    for (const { profile } of this.ofEndpoint(endpointName).slice(0, 1))
      if (profile !== null) this.applyProfile(endpointName, { ...profile, models }, nowMs);
  }

  applyHealth(endpointName: string, report: HealthReport, nowMs: number): void {
    for (const replica of this.ofEndpoint(endpointName)) {
      if (report === "ready") replica.health.apply({ kind: "probe_ready" }, nowMs);
      this.#tell({ kind: "lifecycle", replica });
    }
  }

  /** One scrape of an endpoint, all its ranks. */
  applyScrape(endpointName: string, scrape: ScrapeResult, nowMs: number): void {
    for (const replica of this.ofEndpoint(endpointName)) {
      const metrics = scrape.byRank.get(replica.rank ?? 0);
      if (metrics !== undefined) this.applyMetrics(replica, metrics, nowMs);
    }
  }

  applyMetrics(replica: Replica, metrics: EngineMetrics, nowMs: number): void {
    replica.metrics = { value: metrics, atMs: nowMs };
    replica.refreshLimits();
    replica.load.reconcile(metrics, replica.limits().kvCapacityTokens, nowMs);
  }

  /** Nothing new goes there; what runs, finishes. */
  drain(id: string, nowMs: number): boolean {
    return this.byId(id)?.health.apply({ kind: "drain" }, nowMs) !== undefined;
  }

  resume(id: string, nowMs: number): boolean {
    return this.byId(id)?.health.apply({ kind: "resume" }, nowMs) !== undefined;
  }

  /** The replicas of one endpoint, by rank. */
  ofEndpoint(endpointName: string): readonly Replica[] {
    return this.replicas().filter(({ endpoint }) => endpoint.name === endpointName);
  }

  /** The engine there is another process: its load, its cache and its adapters are gone, late news of it is void. */
  restarted(replica: Replica): void {
    replica.incarnation = ++this.#incarnations;
    replica.load = new ReplicaLoad();
    replica.health.restarted();
    replica.adapters.restarted();
    this.index.clear(replica.index);
    this.#tell({ kind: "restarted", replica });
  }

  /** To be called every second or so: raises what time alone makes true (stale metrics). */
  tick(nowMs: number): void {
    void nowMs;
  }

  /** Returns a function that ends the listening. */
  onChange(listener: (change: FleetChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(change: FleetChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}
