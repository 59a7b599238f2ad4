import type { EngineEndpoint } from "../../discovery/replicaSpec.ts";
import type { KvEventBatch } from "./kvEvent.ts";

/** Why everything that was known of a rank's blocks is void. */
export type KvLoss =
  /** Batches are missing and the engine cannot repeat them. */
  | "gap"
  /** Batches may be missing and the engine did not answer the question for them in time, or has no replay. */
  | "no_replay"
  /** A fuller history than the one known so far, or that of another process, is about to be told from its start. */
  | "rebuild";

export interface KvReplayProgress {
  /** Batches repeated so far in this replay. */
  readonly batches: number;
  /** Last batch told; null: none yet. */
  readonly seq: number | null;
}

/** How far the events told since the last loss, restart or beginning go back. */
export interface KvHistory {
  /** First batch of the unbroken history; null: none was told yet. */
  readonly sinceSeq: number | null;
  /** The history goes back to the engine's start: what it does not name is not there. Else more may be there. */
  readonly complete: boolean;
}

/**
 * Told what the event streams of the fleet say, one stream per endpoint and data-parallel rank. Calls are synchronous;
 * times are on the monitor's clock. Batches come in order, each once, without holes except after `lost` or `restarted`.
 *
 * A rank starts with nothing known. `live` says that what was told is what the engine holds now; from `failed`, `lost`
 * and `restarted` on it may not be, until the next `live`.
 */
export interface KvEventListener {
  batch(endpoint: EngineEndpoint, rank: number, batch: KvEventBatch, nowMs: number): void;
  /** Forget everything told of this rank. Batches told from now on build the view anew. */
  lost(endpoint: EngineEndpoint, rank: number, why: KvLoss, nowMs: number): void;
  /** A new engine process publishes: its cache is empty. Forget everything told of this rank. */
  restarted(endpoint: EngineEndpoint, rank: number, nowMs: number): void;
  /** A replay is under way. */
  progress(endpoint: EngineEndpoint, rank: number, progress: KvReplayProgress, nowMs: number): void;
  live(endpoint: EngineEndpoint, rank: number, history: KvHistory, nowMs: number): void;
  /** The stream is interrupted or could not begin, and tries again by itself. What was told may be out of date. */
  failed(endpoint: EngineEndpoint, rank: number, why: string, nowMs: number): void;
}
