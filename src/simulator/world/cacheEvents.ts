import type { CacheListener } from "#src/emulator/scheduler/blockPool.ts";
import type { KvEvent, KvEventBatch } from "#src/engines/events/kvEvent.ts";
import type { Flight } from "./flight.ts";

/** What an engine process publishes of its prefix cache: one batch for each step that changed it. */
export class CacheEvents implements CacheListener {
  readonly #blockTokens: number;
  #events: KvEvent[] = [];
  #removed: bigint[] = [];
  #seq = 0;

  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens;
  }

  stored(owner: unknown, chain: BigUint64Array, from: number, to: number): void {
    this.#closeRemoved();
    const { tokens, request } = owner as Flight;
    const blockTokens = this.#blockTokens;
    this.#events.push({
      kind: "stored",
      engineHashes: chain.subarray(from, to),
      parent: from === 0 ? null : chain[from - 1]!,
      tokenIds: tokens!.subarray(from * blockTokens, to * blockTokens),
      blockTokens,
      tier: "gpu",
      group: 0,
      fullAttention: true,
      loraName: request.adapter,
      salt: null,
      blockKeys: null,
    });
  }

  removed(hash: bigint): void {
    this.#removed.push(hash);
  }

  cleared(): void {
    this.#closeRemoved();
    this.#events.push({ kind: "cleared" });
  }

  /** What has happened since the last call; null: nothing. */
  take(nowMs: number): KvEventBatch | null {
    this.#closeRemoved();
    if (this.#events.length === 0) return null;
    const events = this.#events;
    this.#events = [];
    return { rank: 0, seq: this.#seq++, publishedMs: nowMs, events, unreadableEvents: 0 };
  }

  /** Blocks that leave one after the other are told in one event. */
  #closeRemoved(): void {
    if (this.#removed.length === 0) return;
    this.#events.push({ kind: "removed", engineHashes: BigUint64Array.from(this.#removed), tier: "gpu", group: 0 });
    this.#removed.length = 0;
  }
}
