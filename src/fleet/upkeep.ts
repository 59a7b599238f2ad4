import type { Fleet } from "./fleet.ts";
import { reportSilent, reportView } from "./precise/viewConditions.ts";
import type { Replica } from "./replica.ts";
import { reportRoles } from "./roles.ts";

/** An unobserved replica is half way back to what its peers are like after this time. */
const RELAX_HALF_LIFE_MS = 20_000;
/** Below this share of predicted hits that came true, the index's word on a replica is not worth much. */
const LEAST_TRUST = 0.5;

/** Raises what time alone makes true: stale metrics, doubtful caches, forgotten speeds. */
export class Upkeep {
  readonly #metricsStaleMs: number;
  readonly #observations = new WeakMap<Replica, number>();
  #lastMs = Number.POSITIVE_INFINITY;

  constructor(metricsStaleMs: number) {
    this.#metricsStaleMs = metricsStaleMs;
  }

  tick(fleet: Fleet, nowMs: number): void {
    fleet.index.expire(nowMs);
    const share = 1 - 2 ** (-Math.max(0, nowMs - this.#lastMs) / RELAX_HALF_LIFE_MS);
    this.#lastMs = nowMs;
    const observed = new Set(fleet.replicas().filter((replica) => this.#wasObserved(replica)));
    for (const replica of fleet.replicas()) {
      this.#watchMetrics(fleet, replica, nowMs);
      watchTrust(fleet, replica, nowMs);
      watchPrediction(fleet, replica, nowMs);
      // A view may change by what other replicas told.
      reportView(fleet, replica, nowMs);
      if (share > 0 && !observed.has(replica)) relax(replica, fleet, observed, share);
    }
    reportSilent(fleet, nowMs);
    reportRoles(fleet, nowMs);
  }

  #watchMetrics({ conditions }: Fleet, { id, lifecycle, metrics }: Replica, nowMs: number): void {
    if (lifecycle.state !== "ready") {
      conditions.clear("metrics_stale", id);
      return;
    }
    const ageMs = nowMs - (metrics?.atMs ?? lifecycle.sinceMs);
    if (ageMs <= this.#metricsStaleMs) conditions.clear("metrics_stale", id);
    else {
      const what = metrics === null ? "no metrics were ever read" : "its last metrics are old";
      conditions.raise("metrics_stale", id, `Load of ${id} is known from own traffic only: ${what}.`, nowMs);
    }
  }

  /** Since the last call. */
  #wasObserved(replica: Replica): boolean {
    const { observations } = replica.latency;
    const before = this.#observations.get(replica);
    this.#observations.set(replica, observations);
    return observations !== before;
  }
}

/**
 * A replica that was found slow is avoided, and so would never be found to have recovered. While its peers are observed
 * and it is not, it is taken to be like them again, by and by. An idle fleet keeps what it has learned.
 */
function relax(replica: Replica, fleet: Fleet, observed: ReadonlySet<Replica>, share: number): void {
  const model = replica.profile?.models.find(({ parent }) => parent === null);
  if (model === undefined) return;
  const { prior } = replica.endpoint;
  const peers = fleet.pool(model.id).filter((peer) => observed.has(peer) && peer.endpoint.prior === prior);
  if (peers.length === 0) return;
  replica.latency.relax(
    median(peers.map(({ latency }) => latency.prefillSlowness)),
    median(peers.map(({ latency }) => latency.stepSlowness)),
    share,
  );
}

function watchTrust({ conditions, index }: Fleet, replica: Replica, nowMs: number): void {
  const { id } = replica;
  if (index.trust(replica.index) >= LEAST_TRUST) conditions.clear("index_distrusted", id);
  else
    conditions.raise(
      "index_distrusted",
      id,
      `${id} reports far fewer cached tokens than its traffic should have left there.`,
      nowMs,
    );
}

function watchPrediction({ conditions }: Fleet, { id, cachePrediction }: Replica, nowMs: number): void {
  if (!cachePrediction.isOff) {
    conditions.clear("cache_prediction_off", id);
    return;
  }
  const percent = Math.round(100 * (cachePrediction.agreement ?? 0));
  const message = `${id} reports as many cached tokens as were predicted in only ${percent} % of its answers.`;
  conditions.raise("cache_prediction_off", id, message, nowMs);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}
