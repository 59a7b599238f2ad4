import type { Fleet } from "./fleet.ts";
import type { Replica } from "./replica.ts";

/** An unobserved replica is half way back to what its peers are like after this time. */
const RELAX_HALF_LIFE_MS = 20_000;
/** Below this share of predicted hits that came true, the index's word on a replica is not worth much. */
const LEAST_TRUST = 0.5;

/** Raises what time alone makes true: stale metrics, doubtful caches, forgotten speeds. */
export class Upkeep {
  readonly #metricsStaleMs: number;
  readonly #observations = new WeakMap<Replica, number>();
  #lastMs = Number.NaN;

  constructor(metricsStaleMs: number) {
    this.#metricsStaleMs = metricsStaleMs;
  }

  tick(fleet: Fleet, nowMs: number): void {
    fleet.index.expire(nowMs);
    for (const replica of fleet.replicas()) {
      this.#watchMetrics(fleet, replica, nowMs);
      watchTrust(fleet, replica, nowMs);
    }
    const sinceMs = nowMs - this.#lastMs;
    this.#lastMs = nowMs;
    if (sinceMs > 0) for (const { id } of fleet.models()) this.#relax(fleet.pool(id), sinceMs);
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

  /**
   * A replica that was found slow is avoided, and so would never be found to have recovered. What is not observed is
   * taken to be like its peers again, by and by.
   */
  #relax(pool: readonly Replica[], sinceMs: number): void {
    const share = 1 - 2 ** (-sinceMs / RELAX_HALF_LIFE_MS);
    for (const replica of pool) {
      const { observations } = replica.latency;
      const before = this.#observations.get(replica);
      this.#observations.set(replica, observations);
      if (before !== observations) continue;
      const peers = pool.filter((peer) => peer !== replica && peer.endpoint.prior === replica.endpoint.prior);
      if (peers.length === 0) continue;
      replica.latency.relax(
        median(peers.map(({ latency }) => latency.prefillSlowness)),
        median(peers.map(({ latency }) => latency.stepSlowness)),
        share,
      );
    }
  }
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

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}
