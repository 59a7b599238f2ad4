import type { TokenWriter } from "../tokenWriter.ts";
import { type MergeTable, NO_RANK } from "./mergeTable.ts";

/** Up to this many symbols a scan for the best merge is faster than a heap. */
const SHORT_SYMBOLS = 48;
/** Positions in a heap entry; a word cannot be longer. */
const POSITIONS = 2 ** 26;
const NONE = -1;

/**
 * Merges the symbols of one word: always the neighbours whose merge has the lowest rank, the leftmost of equals, until
 * no two can be merged.
 *
 * @param symbols token ids; overwritten
 */
export function mergeSymbols(symbols: Int32Array, length: number, merges: MergeTable, out: TokenWriter): void {
  const left = length <= SHORT_SYMBOLS ? mergeShort(symbols, length, merges) : mergeLong(symbols, length, merges);
  for (let i = 0; i < left; i++) out.push(symbols[i]!);
}

/** Rank of symbol i with its right neighbour. */
const ranks = new Int32Array(SHORT_SYMBOLS);

function mergeShort(symbols: Int32Array, length: number, merges: MergeTable): number {
  let count = length;
  for (let i = 0; i + 1 < count; i++) ranks[i] = merges.rank(symbols[i]!, symbols[i + 1]!);
  for (;;) {
    let best = NONE;
    let bestRank = 0x7fffffff;
    for (let i = 0; i + 1 < count; i++) {
      const rank = ranks[i]!;
      if (rank !== NO_RANK && rank < bestRank) {
        bestRank = rank;
        best = i;
      }
    }
    if (best === NONE) return count;
    merges.rank(symbols[best]!, symbols[best + 1]!);
    symbols[best] = merges.merged();
    count--;
    for (let i = best + 1; i < count; i++) {
      symbols[i] = symbols[i + 1]!;
      ranks[i] = ranks[i + 1]!;
    }
    if (best > 0) ranks[best - 1] = merges.rank(symbols[best - 1]!, symbols[best]!);
    if (best + 1 < count) ranks[best] = merges.rank(symbols[best]!, symbols[best + 1]!);
  }
}

/** The same for long words, with a heap of merges over a linked list of symbols. */
function mergeLong(symbols: Int32Array, length: number, merges: MergeTable): number {
  const next = new Int32Array(length);
  const previous = new Int32Array(length);
  const heap = new MinHeap(length * 3);
  const offer = (at: number): void => {
    const after = next[at]!;
    if (after === NONE) return;
    const rank = merges.rank(symbols[at]!, symbols[after]!);
    if (rank !== NO_RANK) heap.push(rank * POSITIONS + at);
  };
  for (let i = 0; i < length; i++) {
    next[i] = i + 1 < length ? i + 1 : NONE;
    previous[i] = i - 1;
  }
  for (let i = 0; i + 1 < length; i++) offer(i);
  for (let entry = heap.pop(); entry !== undefined; entry = heap.pop()) {
    const at = entry % POSITIONS;
    const after = next[at]!;
    // Entries of symbols that have been merged since are stale.
    if (symbols[at] === NONE || after === NONE) continue;
    if (merges.rank(symbols[at]!, symbols[after]!) !== (entry - at) / POSITIONS) continue;
    symbols[at] = merges.merged();
    symbols[after] = NONE;
    const beyond = next[after]!;
    next[at] = beyond;
    if (beyond !== NONE) previous[beyond] = at;
    if (previous[at] !== NONE) offer(previous[at]!);
    offer(at);
  }
  let count = 0;
  for (let i = 0; i !== NONE; i = next[i]!) symbols[count++] = symbols[i]!;
  return count;
}

/** Numbers, the smallest first. */
class MinHeap {
  #entries: Float64Array;
  #size = 0;

  constructor(capacity: number) {
    this.#entries = new Float64Array(capacity);
  }

  push(entry: number): void {
    const entries = this.#entries;
    let at = this.#size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (entries[parent]! <= entry) break;
      entries[at] = entries[parent]!;
      at = parent;
    }
    entries[at] = entry;
  }

  pop(): number | undefined {
    if (this.#size === 0) return undefined;
    const entries = this.#entries;
    const smallest = entries[0]!;
    const last = entries[--this.#size]!;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && entries[child + 1]! < entries[child]!) child++;
      if (entries[child]! >= last) break;
      entries[at] = entries[child]!;
      at = child;
    }
    entries[at] = last;
    return smallest;
  }
}
