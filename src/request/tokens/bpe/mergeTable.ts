/** A merge that is not in the table. */
export const NO_RANK = -1;

const EMPTY = 0xffffffff;

/** The merges of a byte-pair encoding: which two neighbouring tokens become which token, and which merge comes first. */
export class MergeTable {
  readonly #mask: number;
  /** Four words per slot: left id, right id, rank, merged id. */
  readonly #slots: Uint32Array;
  /** Slot of the merge found last. */
  #found = 0;

  constructor(merges: number) {
    let slots = 16;
    while (slots < merges * 2) slots *= 2;
    this.#mask = slots - 1;
    this.#slots = new Uint32Array(slots * 4).fill(EMPTY);
  }

  /** Of equal pairs the last one counts, as in the map that Hugging Face's tokenizers reads them into. */
  add(left: number, right: number, rank: number, merged: number): void {
    const at = this.#slotOf(left, right) * 4;
    this.#slots[at] = left;
    this.#slots[at + 1] = right;
    this.#slots[at + 2] = rank;
    this.#slots[at + 3] = merged;
  }

  /** Rank of the merge of these neighbours (lower goes first), or NO_RANK. */
  rank(left: number, right: number): number {
    const slot = this.#slotOf(left, right);
    this.#found = slot;
    const rank = this.#slots[slot * 4 + 2]!;
    return rank === EMPTY ? NO_RANK : rank;
  }

  /** What the merge becomes whose rank was asked last. */
  merged(): number {
    return this.#slots[this.#found * 4 + 3]!;
  }

  #slotOf(left: number, right: number): number {
    const slots = this.#slots;
    let hash = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35);
    let slot = (hash ^ (hash >>> 13)) & this.#mask;
    for (;;) {
      const at = slot * 4;
      const held = slots[at]!;
      if (held === EMPTY || (held === left && slots[at + 1] === right)) return slot;
      slot = (slot + 1) & this.#mask;
    }
  }
}
