import type { ByteWriter } from "../format/byteWriter.ts";
import { LINK_HASHES, MAX_LINKS, startsAnew } from "../format/chains.ts";
import type { HashKey } from "../format/hashKey.ts";

/** Twice as many slots as links, so that a search ends soon. */
const SLOTS = 2 * MAX_LINKS;
const HALVES = 2 * LINK_HASHES;

/**
 * Writes chains of hashes: what a chain has in common with earlier ones as the number of a link, the rest enciphered. A
 * hash stands for everything before it, so the last one of a link names the whole chain up to there.
 */
export class ChainWriter {
  readonly #key: HashKey;
  /** By slot: the last hash of a link, and its number since the beginning, plus one. */
  readonly #low = new Uint32Array(SLOTS);
  readonly #high = new Uint32Array(SLOTS);
  readonly #number = new Uint32Array(SLOTS);
  /** Links up to this number are forgotten. */
  #forgotten = 0;
  #links = 0;
  #cipher = new Uint32Array(1024);

  constructor(key: HashKey) {
    this.#key = key;
  }

  reset(): void {
    // The numbers go on, so that nothing needs to be wiped; a wipe every 2^31 links keeps them in range.
    if (this.#links > 2 ** 31) {
      this.#number.fill(0);
      this.#links = 0;
    }
    this.#forgotten = this.#links;
  }

  write(hashes: BigUint64Array, to: ByteWriter): void {
    if (startsAnew(this.#links - this.#forgotten, hashes.length)) this.reset();
    const halves = new Uint32Array(hashes.buffer, hashes.byteOffset, 2 * hashes.length);
    const links = Math.floor(hashes.length / LINK_HASHES);
    const known = this.#knownLinks(halves, links);
    to.whole(hashes.length);
    to.whole(known);
    if (known > 0) to.whole(this.#find(halves, known) - this.#forgotten - 1);
    this.#literals(halves, known * HALVES, to);
    const kept = Math.min(links, known + MAX_LINKS - (this.#links - this.#forgotten));
    for (let link = known; link < kept; link++) this.#insert(halves, link + 1);
  }

  /** Hashes that are no prompt's, and so not expected again. */
  literals(hashes: BigUint64Array, to: ByteWriter): void {
    to.whole(hashes.length);
    this.#literals(new Uint32Array(hashes.buffer, hashes.byteOffset, 2 * hashes.length), 0, to);
  }

  #literals(halves: Uint32Array, from: number, to: ByteWriter): void {
    const count = halves.length - from;
    if (this.#cipher.length < count) this.#cipher = new Uint32Array(2 * count);
    this.#key.encipher(halves, from, this.#cipher, 0, count / 2);
    to.words(this.#cipher, count);
  }

  /** How many links from the first on are known: all before a known one are. */
  #knownLinks(halves: Uint32Array, links: number): number {
    let least = 0;
    let most = links;
    while (least < most) {
      const middle = (least + most + 1) >> 1;
      if (this.#find(halves, middle) > 0) least = middle;
      else most = middle - 1;
    }
    return least;
  }

  /** Number, from 1 on, of the link that ends the first `links` links; 0: it is not known. */
  #find(halves: Uint32Array, links: number): number {
    const low = halves[links * HALVES - 2]!;
    const high = halves[links * HALVES - 1]!;
    for (let slot = slotOf(low, high); ; slot = (slot + 1) % SLOTS) {
      const number = this.#number[slot]!;
      if (number <= this.#forgotten) return 0;
      if (this.#low[slot] === low && this.#high[slot] === high) return number;
    }
  }

  #insert(halves: Uint32Array, links: number): void {
    const low = halves[links * HALVES - 2]!;
    const high = halves[links * HALVES - 1]!;
    let slot = slotOf(low, high);
    while (this.#number[slot]! > this.#forgotten) slot = (slot + 1) % SLOTS;
    this.#low[slot] = low;
    this.#high[slot] = high;
    this.#number[slot] = ++this.#links;
  }
}

function slotOf(low: number, high: number): number {
  return (low ^ Math.imul(high, 0x9e3779b1)) & (SLOTS - 1);
}
