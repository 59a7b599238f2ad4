import type { KvEventBatch } from "#src/engines/events/kvEvent.ts";
import type { KvHistory, KvLoss, KvReplayProgress } from "#src/engines/events/kvEventListener.ts";
import type { StreamListener } from "#src/engines/events/stream/streamListener.ts";

/** What a rank holds by what its stream told: how many times each hash, by tier. The simplest view there is. */
export class HeldBlocks implements StreamListener {
  readonly counts = new Map<string, number>();
  readonly story: string[] = [];
  readonly seqs: number[] = [];
  history: KvHistory | null = null;
  isLive = false;
  unreadableEvents = 0;
  #onBatch: (() => void) | null = null;

  /** Runs at each batch; for a listener that is slow or throws the stream out of step. */
  onBatch(run: () => void): void {
    this.#onBatch = run;
  }

  count(event: string): number {
    return this.story.filter((each) => each === event).length;
  }

  batch(batch: KvEventBatch): void {
    this.seqs.push(batch.seq);
    this.unreadableEvents += batch.unreadableEvents;
    for (const event of batch.events) {
      if (event.kind === "cleared") {
        this.counts.clear();
      } else if (event.kind === "stored") {
        for (const hash of event.engineHashes) this.#add(`${event.tier} ${hash}`, 1);
      } else if (event.kind === "removed") {
        for (const hash of event.engineHashes) this.#add(`${event.tier} ${hash}`, -1);
      }
    }
    this.#onBatch?.();
  }

  lost(why: KvLoss): void {
    this.#forget(`lost ${why}`);
  }

  restarted(): void {
    this.#forget("restarted");
  }

  progress(progress: KvReplayProgress): void {
    this.#note(progress.batches === 0 ? "asked" : "progress");
  }

  live(history: KvHistory): void {
    this.history = history;
    this.isLive = true;
    this.#note("live");
  }

  failed(): void {
    this.isLive = false;
    this.#note("failed");
  }

  #forget(event: string): void {
    this.counts.clear();
    this.seqs.length = 0;
    this.history = null;
    this.isLive = false;
    this.#note(event);
  }

  #note(event: string): void {
    if (this.story.at(-1) !== event) this.story.push(event);
  }

  #add(block: string, by: number): void {
    const count = (this.counts.get(block) ?? 0) + by;
    if (count <= 0) this.counts.delete(block);
    else this.counts.set(block, count);
  }
}
