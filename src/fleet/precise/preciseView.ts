import type { KvEventBatch } from "#src/engines/events/kvEvent.ts";
import { ToldEvents, type EventCounts, type EventSurroundings } from "./toldEvents.ts";
import { transition, type Doubt, type DropReason, type ViewInput, type ViewState } from "./viewState.ts";

/** The index around a view. */
export interface ViewSurroundings extends EventSurroundings {
  readonly modelled: EventSurroundings["modelled"] & {
    supersede(replicaIndex: number): void;
    clear(replicaIndex: number): void;
  };
}

/** Since the view began. */
export interface ViewCounts extends EventCounts {
  batches: number;
  /** Told twice, or of an engine process that is gone, or while the view was given up. */
  voidBatches: number;
}

/** An engine that restarted tells of it by its events and by its metrics, in either order, within this time. */
const SAME_RESTART_MS = 30_000;

/** What one replica's engine tells of its KV blocks, kept in the shared block table, and what it is worth. */
export class PreciseView {
  readonly #replica: number;
  readonly #around: ViewSurroundings;
  readonly #events: ToldEvents;
  #state: ViewState = { state: "absent" };
  #restartedMs = Number.NEGATIVE_INFINITY;
  /** The last batch that was applied since what was told last became void. */
  #seq: number | null = null;
  #trouble: string | null = null;
  readonly counts: ViewCounts = {
    batches: 0,
    storedBlocks: 0,
    removedBlocks: 0,
    skippedBlocks: 0,
    unplacedBlocks: 0,
    orphanedBlocks: 0,
    unknownRemovals: 0,
    voidBatches: 0,
  };

  constructor(replicaIndex: number, around: ViewSurroundings) {
    this.#replica = replicaIndex;
    this.#around = around;
    this.#events = new ToldEvents(replicaIndex, around, this.counts, {
      doubt: (why, nowMs) => this.#doubt(why, nowMs),
      drop: (why, nowMs) => this.drop(why, nowMs),
    });
  }

  get state(): ViewState {
    return this.#state;
  }

  /** (block, replica) pairs that this view accounts for. */
  get holders(): number {
    return this.#events.holders;
  }

  get bytes(): number {
    return this.#events.bytes;
  }

  /** Tokens in GPU memory that the view knows of. */
  get gpuTokens(): number {
    return this.#events.gpuTokens;
  }

  /** Of the engine's blocks, as its events say; null: none told yet. */
  get engineBlockTokens(): number | null {
    return this.#events.engineBlockTokens;
  }

  /** Of the blocks that prompts are hashed by; null: nothing told yet. */
  get ownBlockTokens(): number | null {
    return this.#events.ownBlockTokens;
  }

  /** Why its events do not come; null: they come, as far as is known. */
  get trouble(): string | null {
    return this.#trouble;
  }

  apply(batch: KvEventBatch, nowMs: number): void {
    if (this.#state.state === "awaiting") {
      this.counts.voidBatches++;
      return;
    }
    // Streams tell each batch once and in order; a view that relied on it could be wrong without knowing.
    const next = this.#seq === null ? (this.#state.state === "live" ? 0 : batch.seq) : this.#seq + 1;
    if (batch.seq < next) {
      this.counts.voidBatches++;
      return;
    }
    if (batch.seq > next) this.#doubt("batch_missing", nowMs);
    this.#seq = batch.seq;
    if (this.#state.state === "absent") this.#input({ kind: "told" }, nowMs);
    if (batch.seq === 0) this.#input({ kind: "whole" }, nowMs);
    this.counts.batches++;
    for (const event of batch.events) {
      if (event.kind === "cleared") this.#cleared(nowMs);
      else if (this.#state.state !== "dropped") this.#events.apply(event, nowMs);
    }
    if (batch.unreadableEvents > 0) this.#doubt("unreadable", nowMs);
    if (this.#state.state === "dropped") this.counts.voidBatches++;
  }

  /** What was told is void. It stays known as well as own traffic would have it. */
  lost(gap: boolean, nowMs: number): void {
    this.#events.letGo("model");
    this.#seq = null;
    this.#input({ kind: "void", gap }, nowMs);
  }

  /** The engine restarted, by its events. */
  restarted(nowMs: number): void {
    this.#restartedMs = nowMs;
    this.#around.modelled.clear(this.#replica);
    this.#events.letGo("forget");
    this.#seq = null;
    this.#input({ kind: "void", gap: false }, nowMs);
  }

  /** The engine restarted, by other news; what it has told since stays. The caller clears what is modelled. */
  engineRestarted(nowMs: number): void {
    const isKnown = nowMs - this.#restartedMs <= SAME_RESTART_MS;
    this.#restartedMs = Number.NEGATIVE_INFINITY;
    if (isKnown) return;
    this.#events.letGo("forget");
    this.#seq = null;
    this.#input({ kind: "engine_restarted" }, nowMs);
  }

  upToDate(complete: boolean, nowMs: number): void {
    this.#trouble = null;
    this.#input({ kind: "up_to_date", complete }, nowMs);
  }

  interrupted(why: string, nowMs: number): void {
    this.#trouble = why;
    // Behind an interruption may be the next process: what metrics tell then may be of its start.
    this.#restartedMs = Number.NEGATIVE_INFINITY;
    this.#input({ kind: "interrupted" }, nowMs);
  }

  drop(why: DropReason, nowMs: number): void {
    this.#events.letGo("forget");
    if (why === "block_size") this.#events.forgetBlockSize();
    this.#input({ kind: "drop", why }, nowMs);
  }

  /** The replica is no more. */
  forget(): void {
    this.#events.letGo("forget");
  }

  #input(input: ViewInput, nowMs: number): void {
    const before = this.#state;
    this.#state = transition(before, input, nowMs);
    if (this.#state.state === "live" && before.state !== "live") this.#around.modelled.supersede(this.#replica);
  }

  #doubt(why: Doubt, nowMs: number): void {
    this.#input({ kind: "doubt", why }, nowMs);
  }

  #cleared(nowMs: number): void {
    // While the past is told, a clear in it says nothing of what was placed since.
    if (this.#state.state !== "rebuilding") this.#around.modelled.clear(this.#replica);
    this.#events.letGo("forget");
    this.#input({ kind: "whole" }, nowMs);
  }
}
