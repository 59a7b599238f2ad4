import type { CacheListener } from "./blockPool.ts";

/** Blocks that were copied to the host's memory when they got full: least recently used ones make room for new ones. */
export class HostTier {
  readonly #capacityBlocks: number;
  readonly #listener: CacheListener | null;
  /** In order of use, the least recent first. */
  readonly #hashes = new Set<bigint>();

  constructor(capacityBlocks: number, listener: CacheListener | null) {
    this.#capacityBlocks = capacityBlocks;
    this.#listener = listener;
  }

  get blocks(): number {
    return this.#hashes.size;
  }

  has(hash: bigint): boolean {
    return this.#hashes.has(hash);
  }

  /** Copies blocks `from` to `to` (exclusive) of a chain here, as far as they are not here already. */
  store(owner: unknown, chain: BigUint64Array, from: number, to: number): void {
    if (this.#capacityBlocks === 0) return;
    for (let at = from; at < to; at++) {
      const hash = chain[at] ?? 0n;
      const isNew = !this.#hashes.delete(hash);
      if (isNew && this.#hashes.size >= this.#capacityBlocks) this.#evict();
      this.#hashes.add(hash);
      if (isNew) this.#listener?.offloaded?.(owner, chain, at);
    }
  }

  clear(): void {
    this.#hashes.clear();
  }

  #evict(): void {
    for (const oldest of this.#hashes) {
      this.#hashes.delete(oldest);
      this.#listener?.dropped?.(oldest);
      return;
    }
  }
}
