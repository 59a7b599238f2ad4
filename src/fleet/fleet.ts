import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import type { Handoff } from "#src/engines/handoff/handoff.ts";
import type { EngineHealth } from "#src/engines/monitorListener.ts";
import type { EngineMetrics, ScrapeResult, ServedModel } from "#src/engines/vocabulary.ts";
import { GENERIC_PRIOR, PRIORS } from "#src/hardware/stepTimes.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { Conditions } from "./conditions.ts";
import { eligibility } from "./eligibility.ts";
import type { Eligibility } from "./eligibility.ts";
import { EndpointSources, sameEngine } from "./endpointSources.ts";
import { Health } from "./health.ts";
import { HeldKv } from "./heldKv.ts";
import { LatencyModel } from "./latencyModel.ts";
import { Ledger } from "./ledger.ts";
import { legCandidates } from "./legCandidates.ts";
import type { LegPool } from "./legCandidates.ts";
import { LIFECYCLE_LIMITS } from "./lifecycle.ts";
import type { LifecycleLimits } from "./lifecycle.ts";
import { Links } from "./links/links.ts";
import { ModelDirectory } from "./modelDirectory.ts";
import type { ResolvedModel } from "./modelDirectory.ts";
import { OutputLengths } from "./outputLengths.ts";
import { CachePrediction } from "./cachePrediction.ts";
import { PoolBlocks } from "./precise/poolBlocks.ts";
import { reportSilent, reportView } from "./precise/viewConditions.ts";
import { PrefixIndex } from "./prefixIndex.ts";
import type { PrefixIndexOptions } from "./prefixIndex.ts";
import { Replica, replicaId } from "./replica.ts";
import { reportLifecycle, reportLimits, reportMissing } from "./replicaConditions.ts";
import { ReplicaLoad } from "./replicaLoad.ts";
import { handoffsOf, legOf } from "./roles.ts";
import { TokenDensity } from "./tokenDensity.ts";
import { Upkeep } from "./upkeep.ts";

export interface FleetOptions {
  readonly lifecycle?: Partial<LifecycleLimits>;
  readonly index?: PrefixIndexOptions;
  readonly maxReplicas?: number;
  readonly maxReservations?: number;
  /** Metrics older than this are a condition. */
  readonly metricsStaleMs?: number;
}

export type FleetChange =
  | { readonly kind: "added"; readonly replica: Replica }
  /** Requests there that got no byte yet must be placed again. */
  | { readonly kind: "removed"; readonly replica: Replica }
  /** Another process answers there now: everything of the old one is void. */
  | { readonly kind: "restarted"; readonly replica: Replica }
  | { readonly kind: "lifecycle"; readonly replica: Replica }
  | { readonly kind: "models"; readonly replica: Replica }
  /** What its KV events are worth: `fleet.index.view(replica.index).state`. */
  | { readonly kind: "view"; readonly replica: Replica };

/** All replicas, and everything known of them. Pure state: time is an argument, nothing is done by itself. */
export class Fleet {
  readonly ledger: Ledger;
  readonly index: PrefixIndex;
  readonly outputLengths = new OutputLengths();
  readonly tokenDensity = new TokenDensity();
  readonly conditions = new Conditions();
  readonly links = new Links();
  readonly heldKv: HeldKv;
  readonly #lifecycleLimits: LifecycleLimits;
  readonly #maxReplicas: number;
  readonly #sources = new EndpointSources();
  readonly #byEndpoint = new Map<string, readonly Replica[]>();
  readonly #upkeep: Upkeep;
  readonly #poolBlocks = new PoolBlocks(this);
  readonly #listeners = new Set<(change: FleetChange) => void>();
  readonly #freeIndices: number[] = [];
  /** Of models that were asked for; forgotten when roles, engines or models change. */
  readonly #handoffs = new Map<string, readonly Handoff[]>();
  #indexBound = 0;
  #incarnations = 0;
  #replicas: readonly Replica[] = [];
  #byId: ReadonlyMap<string, Replica> = new Map();
  readonly #byIndex: Replica[] = [];
  #directory = new ModelDirectory([]);

  constructor(options: FleetOptions = {}) {
    this.ledger = new Ledger(options.maxReservations);
    this.heldKv = new HeldKv(this.ledger);
    this.index = new PrefixIndex(options.index, (index, blockTokens, nowMs) => {
      const replica = this.#byIndex[index];
      return replica === undefined ? blockTokens : this.#poolBlocks.fitting(replica, blockTokens, nowMs);
    });
    this.#lifecycleLimits = { ...LIFECYCLE_LIMITS, ...options.lifecycle };
    this.#maxReplicas = options.maxReplicas ?? 1024;
    this.#upkeep = new Upkeep(options.metricsStaleMs ?? 15_000);
  }

  replicas(): readonly Replica[] {
    return this.#replicas;
  }

  byId(id: string): Replica | null {
    return this.#byId.get(id) ?? null;
  }

  /** The replicas of one endpoint, by rank. */
  ofEndpoint(endpointName: string): readonly Replica[] {
    return this.#byEndpoint.get(endpointName) ?? [];
  }

  /** Above every `replica.index`: the room that `heldBlocks` needs. */
  get indexBound(): number {
    return this.#indexBound;
  }

  /** Replicas that have the model, whatever their state. */
  pool(model: string): readonly Replica[] {
    return this.#directory.pool(model);
  }

  /** The fleet's models, joined by name. An adapter is there if one replica has it. */
  models(): readonly ServedModel[] {
    return this.#directory.models();
  }

  /** Ways of handing over for which the model has both sides, whatever their state. */
  handoffs(model: string): readonly Handoff[] {
    let known = this.#handoffs.get(model);
    if (known === undefined) this.#handoffs.set(model, (known = handoffsOf(this.pool(model))));
    return known;
  }

  /** Null: nobody has it. */
  resolve(name: string): ResolvedModel | null {
    return this.#directory.resolve(name);
  }

  /** Of the blocks by which prompts to this model are hashed; null: none of its engines has told its own yet. */
  blockTokens(model: string): number | null {
    return this.#poolBlocks.of(this.pool(model));
  }

  /** Of the blocks that the replica's engine shares between prompts: as its events tell, else as its limits say. */
  cacheBlockTokens(replica: Replica): number {
    return this.index.view(replica.index).engineBlockTokens ?? replica.limits().kvBlockTokens;
  }

  eligible(request: RouteRequest, excluded: ReadonlySet<string>, nowMs: number): Eligibility {
    return eligibility(request, this.pool(request.model), excluded, nowMs);
  }

  /** Who could take the legs of a request, one pool per way of handing over. `lastResort`: also who seems dead. */
  legs(request: RouteRequest, excluded: ReadonlySet<string>, lastResort: boolean, nowMs: number): readonly LegPool[] {
    return legCandidates(request, this.pool(request.model), excluded, lastResort, nowMs);
  }

  /** The complete set of endpoints that one source sees now. */
  applyEndpoints(source: string, endpoints: readonly EngineEndpoint[], nowMs: number): void {
    this.#sources.set(source, endpoints);
    const wanted = this.#sources.joined();
    for (const [name, replicas] of this.#byEndpoint) {
      const endpoint = wanted.get(name);
      if (endpoint === undefined || !replicas.every((one) => sameEngine(one.endpoint, endpoint))) this.#remove(name);
      else
        for (const replica of replicas) {
          replica.endpoint = endpoint;
          this.#refreshLimits(replica, nowMs);
        }
    }
    this.#rolesChanged();
    for (const endpoint of wanted.values())
      if (!this.#byEndpoint.has(endpoint.name)) this.#add(endpoint, endpoint.dataParallelRanks ?? 1, nowMs);
    reportSilent(this, nowMs);
  }

  /** What probing an endpoint found. Where it has more ranks than was known, its replicas are made anew. */
  applyProfile(endpointName: string, profile: EngineProfile, nowMs: number): void {
    const endpoint = this.ofEndpoint(endpointName)[0]?.endpoint;
    if (endpoint === undefined) return;
    const ranks = endpoint.dataParallelRanks ?? Math.max(1, profile.dataParallelRanks);
    if (ranks !== this.ofEndpoint(endpointName).length) {
      this.#remove(endpointName);
      this.#add(endpoint, ranks, nowMs);
    }
    for (const replica of this.ofEndpoint(endpointName)) {
      replica.setProfile(profile);
      this.#refreshLimits(replica, nowMs);
    }
    this.#directory = new ModelDirectory(this.#replicas);
    this.#rolesChanged();
    this.#poolBlocks.joined(this.ofEndpoint(endpointName), nowMs);
    for (const replica of this.ofEndpoint(endpointName)) this.#tell({ kind: "models", replica });
  }

  /** A later model list of an endpoint that was identified. */
  applyModels(endpointName: string, models: readonly ServedModel[], nowMs: number): void {
    const profile = this.ofEndpoint(endpointName)[0]?.profile;
    if (profile) this.applyProfile(endpointName, { ...profile, models }, nowMs);
  }

  applyHealth(endpointName: string, health: EngineHealth, nowMs: number): void {
    for (const replica of this.ofEndpoint(endpointName)) {
      if (health === "silent") replica.health.hung(nowMs);
      else if (health === "unreachable") replica.health.apply({ kind: "probe_refused" }, nowMs);
      else replica.health.apply({ kind: health === "ready" ? "probe_ready" : "probe_loading" }, nowMs);
    }
  }

  /** One scrape of an endpoint, all its ranks. Ranks it does not speak of keep what they had, and it ages. */
  applyScrape(endpointName: string, scrape: ScrapeResult, nowMs: number): void {
    for (const replica of this.ofEndpoint(endpointName)) {
      const metrics = scrape.byRank.get(replica.rank ?? 0);
      if (metrics !== undefined) this.applyMetrics(replica, metrics, nowMs);
      reportMissing(this.conditions, replica, scrape.missing, nowMs);
    }
  }

  applyMetrics(replica: Replica, metrics: EngineMetrics, nowMs: number): void {
    replica.metrics = { value: metrics, atMs: nowMs };
    replica.adapters.setInUse(metrics.residentAdapters, metrics.maxResidentAdapters);
    this.#refreshLimits(replica, nowMs);
    replica.load.reconcile(metrics, replica.limits().kvCapacityTokens, nowMs);
    this.conditions.clear("metrics_stale", replica.id);
  }

  /** Another process answers at this endpoint. */
  endpointRestarted(endpointName: string, nowMs: number): void {
    for (const replica of this.ofEndpoint(endpointName)) this.restarted(replica, nowMs);
  }

  /** The engine there is another process: its load, its cache and its adapters are gone, late news of it is void. */
  restarted(replica: Replica, nowMs: number): void {
    replica.incarnation = ++this.#incarnations;
    replica.load = new ReplicaLoad();
    replica.metrics = null;
    replica.health.restarted(nowMs);
    replica.adapters.restarted();
    replica.cachePrediction = new CachePrediction();
    this.index.restarted(replica.index, nowMs);
    reportView(this, replica, nowMs);
    this.#tell({ kind: "restarted", replica });
  }

  /** To be called when the state of its view has changed. */
  viewChanged(replica: Replica, nowMs: number): void {
    reportView(this, replica, nowMs);
    reportSilent(this, nowMs);
    this.#tell({ kind: "view", replica });
  }

  /** Nothing new goes there; what runs, finishes. False: no such replica. */
  drain(id: string, nowMs: number): boolean {
    return this.byId(id)?.health.apply({ kind: "drain" }, nowMs) !== undefined;
  }

  resume(id: string, nowMs: number): boolean {
    return this.byId(id)?.health.apply({ kind: "resume" }, nowMs) !== undefined;
  }

  /** To be called every second or so. */
  tick(nowMs: number): void {
    this.heldKv.expire(nowMs);
    this.#upkeep.tick(this, nowMs);
  }

  /** Returns a function that ends the listening. */
  onChange(listener: (change: FleetChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #add(endpoint: EngineEndpoint, ranks: number, nowMs: number): void {
    if (this.#replicas.length + ranks > this.#maxReplicas) {
      const message = `${endpoint.name} is left out: the fleet is limited to ${this.#maxReplicas} replicas.`;
      this.conditions.raise("replica_limit_reached", null, message, nowMs);
      return;
    }
    const added = Array.from({ length: ranks }, (_, rank) => this.#make(endpoint, ranks === 1 ? null : rank, nowMs));
    this.#byEndpoint.set(endpoint.name, added);
    this.#membersChanged();
    for (const replica of added) this.#tell({ kind: "added", replica });
  }

  #make(endpoint: EngineEndpoint, rank: number | null, nowMs: number): Replica {
    const prior = endpoint.prior === null ? undefined : PRIORS.get(endpoint.prior);
    const replica: Replica = new Replica({
      id: replicaId(endpoint.name, rank),
      index: this.#freeIndices.pop() ?? this.#indexBound++,
      incarnation: ++this.#incarnations,
      endpoint,
      rank,
      latency: new LatencyModel(prior ?? GENERIC_PRIOR, prior === undefined ? "generic" : "prior"),
      health: new Health(nowMs, this.#lifecycleLimits, (_lifecycle, atMs) => this.#stateChanged(replica, atMs)),
    });
    this.#byIndex[replica.index] = replica;
    this.index.setCapacity(replica.index, replica.limits().kvCapacityTokens);
    return replica;
  }

  #remove(endpointName: string): void {
    const removed = this.ofEndpoint(endpointName);
    this.#byEndpoint.delete(endpointName);
    for (const replica of removed) {
      replica.removed = true;
      this.index.clear(replica.index);
      this.links.forget(replica);
      this.#freeIndices.push(replica.index);
      this.conditions.clearReplica(replica.id);
    }
    this.conditions.clear("replica_limit_reached", null);
    this.#membersChanged();
    for (const replica of removed) this.#tell({ kind: "removed", replica });
  }

  #membersChanged(): void {
    this.#replicas = [...this.#byEndpoint.values()].flat();
    this.#byId = new Map(this.#replicas.map((replica) => [replica.id, replica]));
    this.#directory = new ModelDirectory(this.#replicas);
    this.#rolesChanged();
  }

  #rolesChanged(): void {
    this.#handoffs.clear();
    const taking = (leg: "prefill" | "decode") => this.#replicas.filter((replica) => legOf(replica) === leg);
    this.links.members(taking("prefill"), taking("decode"));
  }

  #refreshLimits(replica: Replica, nowMs: number): void {
    replica.refreshLimits();
    const { kvCapacityTokens } = replica.limits();
    const caching = replica.metrics?.value.prefixCachingEnabled ?? replica.profile?.prefixCachingEnabled ?? null;
    this.index.setCapacity(replica.index, caching === false ? 0 : kvCapacityTokens);
    reportLimits(this.conditions, replica, caching, nowMs);
  }

  #stateChanged(replica: Replica, nowMs: number): void {
    if (replica.removed) return;
    reportLifecycle(this.conditions, replica, nowMs);
    this.#tell({ kind: "lifecycle", replica });
  }

  #tell(change: FleetChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}
