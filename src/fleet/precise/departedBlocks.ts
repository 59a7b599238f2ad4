import type { BlockTable } from "../blockTable.ts";
import type { HandleTable } from "./handleTable.ts";

/** Own blocks, more than an engine removes in a few of its steps. */
const MAX_BLOCKS = 2048;

/**
 * The blocks that left last, by the engine's hashes. Offloading is told by hashes only, and perhaps after the block has
 * left GPU memory: in a batch of vLLM's, what the cache removed comes before what the connector stored.
 */
export class DepartedBlocks {
  readonly #blocksEach: number;
  readonly #max: number;
  /** Of each: the engine's hash, the own ones, as halves. A ring. */
  readonly #words: Uint32Array;
  #count = 0;

  constructor(blocksEach: number) {
    this.#blocksEach = blocksEach;
    this.#max = Math.max(1, Math.floor(MAX_BLOCKS / blocksEach));
    this.#words = new Uint32Array(this.#max * this.#wordsEach);
  }

  get bytes(): number {
    return this.#words.byteLength;
  }

  get #wordsEach(): number {
    return 2 + 2 * this.#blocksEach;
  }

  /** A handle whose last copy has gone, and which is about to follow. */
  note(handles: HandleTable, slot: number, blocks: BlockTable): void {
    const at = (this.#count++ % this.#max) * this.#wordsEach;
    this.#words[at] = handles.low(slot);
    this.#words[at + 1] = handles.high(slot);
    for (let part = 0; part < this.#blocksEach; part++) {
      const block = handles.block(slot, part);
      this.#words[at + 2 + 2 * part] = blocks.low(block);
      this.#words[at + 3 + 2 * part] = blocks.high(block);
    }
  }

  /** Own hashes of the block, as halves, valid until the next `note`; null: not among those that left last. */
  find(low: number, high: number): Uint32Array | null {
    const words = this.#words;
    const oldest = Math.max(0, this.#count - this.#max);
    for (let each = this.#count - 1; each >= oldest; each--) {
      const at = (each % this.#max) * this.#wordsEach;
      if (words[at] === low && words[at + 1] === high) return words.subarray(at + 2, at + this.#wordsEach);
    }
    return null;
  }
}
