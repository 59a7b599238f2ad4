import { BlockPool } from "#src/emulator/scheduler/blockPool.ts";

/**
 * One cache of all engines' memory together, least recently used blocks leaving first, that knows every prompt from the
 * moment it arrives: what routing by prefix could reach if placement cost nothing.
 */
export class PooledCache {
  readonly #pool: BlockPool;
  readonly #blockTokens: number;
  #held = new Int32Array(1024);
  #promptTokens = 0;
  #cachedTokens = 0;

  constructor(blocks: number, blockTokens: number) {
    this.#pool = new BlockPool(blocks);
    this.#blockTokens = blockTokens;
  }

  /** Of all prompts seen so far. */
  get cachedShare(): number {
    return this.#promptTokens === 0 ? 0 : this.#cachedTokens / this.#promptTokens;
  }

  /** `chain`: hashes of prompt and answer. */
  see(chain: BigUint64Array, promptTokens: number): void {
    this.#promptTokens += promptTokens;
    if (chain.length > this.#pool.blocks) return;
    if (this.#held.length < chain.length) this.#held = new Int32Array(2 * chain.length);
    const words = new Uint32Array(chain.buffer, chain.byteOffset, 2 * chain.length);
    const held = this.#held;
    // As in an engine, at least one token is left to compute.
    const usable = Math.floor((promptTokens - 1) / this.#blockTokens);
    let hits = 0;
    for (let at = 0; at < chain.length; at++) {
      const low = words[2 * at]!;
      const high = words[2 * at + 1]!;
      const known = this.#pool.find(low, high);
      if (known === -1) {
        held[at] = this.#pool.take();
        this.#pool.publish(held[at]!, low, high);
        continue;
      }
      held[at] = known;
      this.#pool.share(known);
      if (at === hits && at < usable) hits++;
    }
    for (let at = chain.length - 1; at >= 0; at--) this.#pool.release(held[at]!);
    this.#cachedTokens += hits * this.#blockTokens;
  }
}
