import type { KvEventBatch } from "../kvEvent.ts";
import type { KvHistory, KvLoss, KvReplayProgress } from "../kvEventListener.ts";
import type { StreamState } from "./streamState.ts";

/** What one stream tells: the fleet's listener with the endpoint and rank filled in. */
export interface StreamListener {
  batch(batch: KvEventBatch): void;
  lost(why: KvLoss): void;
  restarted(): void;
  progress(progress: KvReplayProgress): void;
  live(history: KvHistory): void;
  failed(why: string): void;
}

/** For status pages and metrics; counts are since the stream began. */
export interface StreamStatus {
  readonly phase: StreamState["phase"];
  /** Last batch told; null: none. */
  readonly cursor: number | null;
  readonly batches: number;
  readonly events: number;
  readonly unreadableEvents: number;
  /** Messages that were no batches. */
  readonly strayMessages: number;
  /** Messages for which there was no room. */
  readonly droppedMessages: number;
  readonly replays: number;
  readonly losses: number;
  readonly restarts: number;
}
