import type { CacheListener } from "../scheduler/blockPool.ts";
import type { BlockContent, CacheEvent, StoredEvent } from "./cacheEvent.ts";

/**
 * Collects what happens to the prefix cache until the step in which it happened is delivered. What happens between two
 * steps, as a reset does, is told with the next one: an idle engine publishes nothing.
 */
export class CacheRecorder implements CacheListener {
  readonly #blockTokens: number;
  readonly #adapterIds = new Map<string, number>();
  #now: CacheEvent[] = [];
  #sealed: CacheEvent[] = [];

  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens;
  }

  stored(owner: unknown, chain: BigUint64Array, from: number, to: number): void {
    this.#now.push(this.#storedEvent(owner, chain, from, to));
  }

  #storedEvent(owner: unknown, chain: BigUint64Array, from: number, to: number): StoredEvent {
    const { tokens, adapter, salt } = (owner as { readonly content: BlockContent }).content;
    const blockTokens = this.#blockTokens;
    return {
      kind: "stored",
      tier: "gpu",
      hashes: chain.subarray(from, to),
      parent: from === 0 ? null : (chain[from - 1] ?? null),
      tokens: tokens.subarray(from * blockTokens, to * blockTokens),
      blockTokens,
      adapter: adapter === null ? null : { name: adapter, id: this.#adapterId(adapter) },
      salt,
    };
  }

  offloaded(owner: unknown, chain: BigUint64Array, at: number): void {
    this.#now.push({ ...this.#storedEvent(owner, chain, at, at + 1), tier: "host" });
  }

  dropped(hash: bigint): void {
    this.#now.push({ kind: "removed", tier: "host", hash });
  }

  removed(hash: bigint): void {
    this.#now.push({ kind: "removed", tier: "gpu", hash });
  }

  cleared(): void {
    // Clearing an idle engine over and over must not fill memory.
    if (this.#now.at(-1)?.kind !== "cleared") this.#now.push({ kind: "cleared" });
  }

  /** A step has begun: what was recorded until now is delivered with it, what comes later is not. */
  seal(): void {
    this.#sealed.push(...this.#now);
    this.#now = [];
  }

  /** What belongs to the step that is delivered now. */
  take(): readonly CacheEvent[] {
    const taken = this.#sealed;
    this.#sealed = [];
    return taken;
  }

  /** vLLM numbers adapters from 1 in the order in which they come. */
  #adapterId(name: string): number {
    const known = this.#adapterIds.get(name);
    if (known !== undefined) return known;
    this.#adapterIds.set(name, this.#adapterIds.size + 1);
    return this.#adapterIds.size;
  }
}
