import type { HeldBlocks } from "./blockIndex.ts";
import { READ_AHEAD, type BlockTable } from "./blockTable.ts";
import { NOBODY } from "./holderSets.ts";

/** Bits by replica index. */
type Bits = Uint32Array<ArrayBuffer>;

/**
 * Walks along a chain of blocks, for all candidates and tiers at once: on each tier those are still on their way that
 * have held every block so far. Keeps its scratch between walks.
 */
export class PrefixWalk {
  #words = 0;
  #onGpu: Bits = new Uint32Array(0);
  #onHost: Bits = new Uint32Array(0);
  #onAny: Bits = new Uint32Array(0);
  #haveGpu: Bits = new Uint32Array(0);
  #haveHost: Bits = new Uint32Array(0);
  #haveAny: Bits = new Uint32Array(0);

  /** Makes room for replicas with indices below `replicas`. */
  widen(replicas: number): void {
    const words = Math.ceil(replicas / 32);
    if (words <= this.#words) return;
    this.#words = words;
    const bits = (): Bits => new Uint32Array(words);
    [this.#onGpu, this.#onHost, this.#onAny] = [bits(), bits(), bits()];
    [this.#haveGpu, this.#haveHost, this.#haveAny] = [bits(), bits(), bits()];
  }

  match(
    table: BlockTable,
    hashes: BigUint64Array,
    candidates: ArrayLike<{ readonly index: number }>,
    out: HeldBlocks,
  ): void {
    this.#start(candidates, out);
    const halves = new Uint32Array(hashes.buffer, hashes.byteOffset, hashes.length * 2);
    const slower = table.hasSlowerTiers;
    let holders = NOBODY;
    let length = 0;
    let readUntil = 0;
    while (length < hashes.length) {
      const block = table.find(halves[2 * length]!, halves[2 * length + 1]!);
      if (block === 0) break;
      const now = table.holders(block);
      if (now !== holders && !this.#pass(table, now, length, slower, out)) return;
      holders = now;
      // Chains mostly lie one block after another, and their holders change where they branch.
      const run = table.runLength(block, holders, halves, length);
      length += run;
      // Where runs are short, each begins with a look-up.
      if (run < READ_AHEAD && length >= readUntil) {
        table.readAhead(halves, length, hashes.length);
        readUntil = length + READ_AHEAD;
      }
    }
    this.#end(length, slower, out);
  }

  #start(candidates: ArrayLike<{ readonly index: number }>, out: HeldBlocks): void {
    const onAny = this.#onAny.fill(0);
    for (let at = 0; at < candidates.length; at++) {
      const { index } = candidates[at]!;
      if (index >>> 5 < this.#words) onAny[index >>> 5]! |= 1 << (index & 31);
      // A replica that never held anything has no bit yet.
      else out.gpu[index] = out.host[index] = out.disk[index] = 0;
    }
    this.#onGpu.set(onAny);
    this.#onHost.set(onAny);
  }

  /** The block after `length` blocks has these holders. False: nobody is left. */
  #pass(table: BlockTable, holders: number, length: number, slower: boolean, out: HeldBlocks): boolean {
    for (let word = 0; word < this.#words; word++) this.#haveGpu[word] = this.#haveHost[word] = this.#haveAny[word] = 0;
    table.sets.addTo(holders, this.#haveGpu, this.#haveHost, this.#haveAny);
    const left = this.#keep(this.#onAny, this.#haveAny, length, out.disk, slower ? null : out);
    if (slower) {
      this.#keep(this.#onGpu, this.#haveGpu, length, out.gpu, null);
      this.#keep(this.#onHost, this.#haveHost, length, out.host, null);
    }
    return left;
  }

  /** @param all gets the same on every tier, where there is but one */
  #keep(on: Bits, have: Bits, length: number, to: Uint32Array, all: HeldBlocks | null): boolean {
    let left = 0;
    for (let word = 0; word < on.length; word++) {
      const before = on[word]!;
      const after = (before & have[word]!) >>> 0;
      if (after !== before) {
        write(word, before & ~after, length, to, all);
        on[word] = after;
      }
      left |= after;
    }
    return left !== 0;
  }

  #end(length: number, slower: boolean, out: HeldBlocks): void {
    for (let word = 0; word < this.#words; word++) {
      write(word, this.#onAny[word]!, length, out.disk, slower ? null : out);
      if (!slower) continue;
      write(word, this.#onGpu[word]!, length, out.gpu, null);
      write(word, this.#onHost[word]!, length, out.host, null);
    }
  }
}

function write(word: number, bits: number, length: number, to: Uint32Array, all: HeldBlocks | null): void {
  for (let left = bits; left !== 0; left &= left - 1) {
    const index = word * 32 + 31 - Math.clz32(left & -left);
    to[index] = length;
    if (all !== null) all.gpu[index] = all.host[index] = length;
  }
}
