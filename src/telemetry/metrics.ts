import { Registry } from "prom-client";
import * as buckets from "./buckets.ts";
import { CounterFamily } from "./counterFamily.ts";
import { addReplicaGauges, addRouterGauges } from "./gauges.ts";
import { HistogramFamily } from "./histogramFamily.ts";
import { addKvStreamCounters } from "./kvStreamCounters.ts";
import { ModelMetrics } from "./modelMetrics.ts";
import type { ModelFamilies } from "./modelMetrics.ts";
import { addProcessGauges } from "./processGauges.ts";
import { NO_SOURCES } from "./snapshots.ts";
import type { TelemetrySources } from "./snapshots.ts";
import { totalsOf, type Totals } from "./totals.ts";

/** Models with series of their own; further ones share the series `other`. */
const MAX_MODELS = 1_000;

/** Observed in milliseconds, shown in seconds. */
const SECONDS_PER_MS = 1 / 1000;

/** Everything Prometheus sees of the router, in a registry of its own. */
export class Metrics {
  readonly registry = new Registry();
  /** By policy and the branch it took. */
  readonly decisions: CounterFamily;
  /** By why the attempt before failed. */
  readonly retries: CounterFamily;
  /** By error code: refused before anything was placed. */
  readonly admissionRejections: CounterFamily;
  /** By why a request has no identity. */
  readonly unhashable: CounterFamily;
  /** By why a request whose model has a tokenizer is known by its text all the same. */
  readonly textIdentities: CounterFamily;
  /** By why a client was not let in. */
  readonly authFailures: CounterFamily;
  /** By replica and how an attempt there ended. */
  readonly replicaAttempts: CounterFamily;
  /** By replica, where reported: what decisions counted on, what the engine found, and the sum of differences. */
  readonly replicaCachedPredicted: CounterFamily;
  readonly replicaCachedReported: CounterFamily;
  readonly replicaCachedError: CounterFamily;
  readonly #families: ModelFamilies;
  readonly #models = new Map<string, ModelMetrics>();
  readonly #sources: TelemetrySources;
  readonly #stopWatching: () => void;

  constructor(sources: Partial<TelemetrySources> = {}) {
    const { registry } = this;
    this.#sources = { ...NO_SOURCES, ...sources };
    this.#families = modelFamilies(registry);
    const counter = (name: string, help: string, labels: readonly string[]): CounterFamily =>
      new CounterFamily(registry, { name, help, labels });
    this.decisions = counter("kvasir_decisions_total", "Choices of a replica.", ["policy", "branch"]);
    this.retries = counter("kvasir_retries_total", "Attempts after the first, by why the one before failed.", [
      "reason",
    ]);
    this.admissionRejections = counter("kvasir_admission_rejections_total", "Requests refused unplaced.", ["code"]);
    this.unhashable = counter("kvasir_unhashable_total", "Requests routed without a prefix.", ["reason"]);
    this.textIdentities = counter(
      "kvasir_text_identities_total",
      "Requests known by their text though their model has a tokenizer.",
      ["reason"],
    );
    this.authFailures = counter("kvasir_auth_failures_total", "Clients not let in.", ["reason"]);
    this.replicaAttempts = counter("kvasir_replica_attempts_total", "Attempts that ended.", ["replica", "outcome"]);
    const cached = (name: string, help: string): CounterFamily =>
      counter(`kvasir_replica_cached_tokens_${name}_total`, help, ["replica"]);
    this.replicaCachedPredicted = cached("predicted", "Cached prompt tokens predicted, of answers that report them.");
    this.replicaCachedReported = cached("reported", "Cached prompt tokens that the replica reported.");
    this.replicaCachedError = cached("error", "Difference of predicted and reported cached tokens.");
    addRouterGauges(registry, this.#sources);
    addReplicaGauges(registry, this.#sources);
    addKvStreamCounters(registry, this.#sources);
    this.#stopWatching = addProcessGauges(registry);
  }

  /** The series of a model of the fleet. Never to be called with a name that only a client has said. */
  model(name: string): ModelMetrics {
    let model = this.#models.get(name);
    if (model !== undefined) return model;
    if (this.#models.size >= MAX_MODELS && name !== "other") return this.model("other");
    model = new ModelMetrics(name, this.#families);
    this.#models.set(name, model);
    return model;
  }

  totals(): Totals {
    return totalsOf(this.#models.values());
  }

  /** The exposition, for `GET /metrics`. */
  async render(): Promise<string> {
    const present = new Set([...this.#sources.replicas()].map(({ replica }) => replica));
    const ofReplicas = [
      this.replicaAttempts,
      this.replicaCachedPredicted,
      this.replicaCachedReported,
      this.replicaCachedError,
    ];
    for (const family of ofReplicas) family.prune(({ replica }) => present.has(replica ?? ""));
    return this.registry.metrics();
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  close(): void {
    this.#stopWatching();
  }
}

function modelFamilies(registry: Registry): ModelFamilies {
  const seconds = (name: string, help: string, bounds: readonly number[], labels = ["model"]): HistogramFamily =>
    new HistogramFamily(registry, { name: `kvasir_${name}`, help, bounds, labels, shownPerObserved: SECONDS_PER_MS });
  const tokens = (name: string, help: string): HistogramFamily =>
    new HistogramFamily(registry, { name: `kvasir_${name}`, help, bounds: buckets.TOKENS, labels: ["model"] });
  const counter = (name: string, help: string, labels = ["model"]): CounterFamily =>
    new CounterFamily(registry, { name: `kvasir_${name}`, help, labels });
  return {
    timeToFirstToken: seconds(
      "time_to_first_token_seconds",
      "From the request's arrival to its first token.",
      buckets.TTFT_SECONDS,
    ),
    interTokenLatency: seconds("inter_token_latency_seconds", "Between streamed events.", buckets.ITL_SECONDS),
    queueTime: seconds("request_queue_time_seconds", "Waiting in the router.", buckets.QUEUE_SECONDS, [
      "model",
      "class",
    ]),
    e2eLatency: seconds("e2e_request_latency_seconds", "From arrival to the answer's end.", buckets.E2E_SECONDS),
    routerTime: seconds("router_time_seconds", "The router's own share of a request.", buckets.ROUTER_SECONDS),
    requestPromptTokens: tokens("request_prompt_tokens", "Prompt tokens per request, as reported."),
    requestGenerationTokens: tokens("request_generation_tokens", "Output tokens per request."),
    promptTokens: counter("prompt_tokens_total", "Prompt tokens."),
    generationTokens: counter("generation_tokens_total", "Output tokens."),
    cachedTokensPredicted: counter("cached_tokens_predicted_total", "Cached prompt tokens that decisions counted on."),
    cachedTokensReported: counter("cached_tokens_reported_total", "Cached prompt tokens that engines reported."),
    cachedTokensError: counter(
      "cached_tokens_error_total",
      "Difference of predicted and reported cached tokens, where reported.",
    ),
    shed: counter("requests_shed_total", "Requests refused for the load there is, after they were read.", [
      "model",
      "class",
      "code",
    ]),
    requests: counter("requests_total", "Requests that ended.", ["model", "status", "code"]),
  };
}
