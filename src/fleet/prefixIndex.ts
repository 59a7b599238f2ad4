import type { BlockIndex, HeldBlocks } from "./blockIndex.ts";
import { BlockTable } from "./blockTable.ts";
import { HolderTable } from "./holderTable.ts";
import { PendingQueue, PlacedPrefix } from "./placedPrefix.ts";
import { ReplicaCaches } from "./replicaCaches.ts";

export type { PlacedPrefix };

/** A prompt as the index sees it: part of `Identity`. */
export interface BlockChain {
  readonly hashes: BigUint64Array;
  readonly blockTokens: number;
}

export interface PrefixIndexOptions {
  /** Bound on (block, replica) pairs over the whole fleet; at about 60 bytes each. At least 1024. */
  readonly maxHolders?: number;
  /** How long a placed request may take to its first token before its blocks are forgotten again. */
  readonly pendingMs?: number;
  /** Bound on requests that are placed and not confirmed; past it the oldest are forgotten. */
  readonly maxPending?: number;
}

/** Pending times are kept in tenths of a second: 32 bits of them are 13 years. */
const TICK_MS = 100;
/** Blocks by which an answer may fall short without meaning anything: an engine always recomputes the last one. */
const SHORTFALL_TOLERANCE_BLOCKS = 1;

/**
 * Learns from own traffic which replica holds which prefix: what was sent there is taken to be there, least recently
 * used blocks leave when the modelled capacity is reached. A chain is touched from its last block to its first, so its
 * tail leaves before its root, as in an engine. Memory is bounded by `maxHolders`.
 */
export class PrefixIndex implements BlockIndex {
  readonly #maxHolders: number;
  readonly #pendingTicks: number;
  readonly #blocks: BlockTable;
  readonly #holders: HolderTable;
  readonly #caches = new ReplicaCaches();
  readonly #pending: PendingQueue;
  /** Candidates that hold all blocks so far, as bits; scratch of `match`. */
  #alive = new Uint32Array(1);

  constructor(options: PrefixIndexOptions = {}) {
    this.#maxHolders = Math.max(1024, options.maxHolders ?? 2 ** 21);
    this.#pendingTicks = Math.ceil((options.pendingMs ?? 60_000) / TICK_MS);
    this.#pending = new PendingQueue(options.maxPending ?? 50_000);
    this.#blocks = new BlockTable(this.#maxHolders);
    this.#holders = new HolderTable(this.#maxHolders);
  }

  /** (block, replica) pairs. */
  get size(): number {
    return this.#holders.size;
  }

  /** Distinct blocks. */
  get blocks(): number {
    return this.#blocks.size;
  }

  /** Memory of the tables. */
  get bytes(): number {
    return this.#blocks.bytes + this.#holders.bytes;
  }

  /** Requests placed and not yet confirmed, abandoned or expired. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Blocks held by one replica. */
  heldBy(replicaIndex: number): number {
    return this.#holders.count(replicaIndex);
  }

  /** Reported over predicted hits of this replica, 0..1, recent answers counting most; predictions are scaled by it. */
  trust(replicaIndex: number): number {
    return this.#caches.trust(replicaIndex);
  }

  /** Modelled capacity of the replica's cache in tokens; 0: it caches no prefixes. */
  setCapacity(replicaIndex: number, tokens: number): void {
    this.#widen(replicaIndex);
    this.#caches.setCapacity(replicaIndex, tokens);
    if (tokens <= 0) this.clear(replicaIndex);
  }

  match(hashes: BigUint64Array, candidates: ArrayLike<{ readonly index: number }>, out: HeldBlocks): void {
    const words = this.#blocks.wordsPerBlock;
    if (this.#alive.length < words) this.#alive = new Uint32Array(words);
    const alive = this.#alive.fill(0);
    for (let at = 0; at < candidates.length; at++) {
      const { index } = candidates[at]!;
      if (index >>> 5 < words) alive[index >>> 5]! |= 1 << (index & 31);
      // A replica that nothing was ever placed on has no bit yet.
      else out.gpu[index] = out.host[index] = out.disk[index] = 0;
    }
    const halves = new Uint32Array(hashes.buffer, hashes.byteOffset, hashes.length * 2);
    const { holders } = this.#blocks;
    let length = 0;
    for (; length < hashes.length; length++) {
      const block = this.#blocks.find(halves[2 * length]!, halves[2 * length + 1]!);
      if (block === 0) break;
      let left = 0;
      for (let word = 0; word < words; word++) {
        const before = alive[word]!;
        const after = (before & holders[block * words + word]!) >>> 0;
        if (after !== before) {
          this.#ended(word, before & ~after, length, out);
          alive[word] = after;
        }
        left |= after;
      }
      if (left === 0) return;
    }
    for (let word = 0; word < words; word++) this.#ended(word, alive[word]!, length, out);
  }

  /** A request was placed: its blocks count at once, and are forgotten if it is not confirmed in time. */
  place(replicaIndex: number, chain: BlockChain, nowMs: number): PlacedPrefix {
    this.expire(nowMs);
    this.#widen(replicaIndex);
    const untilTick = Math.ceil(Math.max(0, nowMs) / TICK_MS) + this.#pendingTicks;
    const { hashes } = chain;
    const capacityBlocks = Math.min(this.#caches.capacity(replicaIndex) / chain.blockTokens, this.#maxHolders / 2);
    const blocks = Math.min(hashes.length, Math.floor(capacityBlocks));
    this.#makeRoom(replicaIndex, blocks, capacityBlocks);

    let heldBlocks = blocks;
    let surelyHeldBlocks = blocks;
    const halves = new Uint32Array(hashes.buffer, hashes.byteOffset, blocks * 2);
    for (let at = blocks - 1; at >= 0; at--) {
      const low = halves[2 * at]!;
      const high = halves[2 * at + 1]!;
      const block = this.#blocks.find(low, high);
      const holder = block === 0 ? 0 : this.#holders.find(block, replicaIndex);
      if (holder === 0) {
        heldBlocks = surelyHeldBlocks = at;
        this.#hold(block === 0 ? this.#blocks.add(low, high) : block, replicaIndex, untilTick);
        continue;
      }
      this.#holders.touch(holder);
      if (this.#holders.pendingUntil(holder) !== 0) {
        surelyHeldBlocks = at;
        this.#holders.setPendingUntil(holder, untilTick);
      }
    }
    this.#trim(replicaIndex, capacityBlocks);
    const placed = new PlacedPrefix({
      replicaIndex,
      life: this.#caches.life(replicaIndex),
      hashes,
      blocks,
      heldBlocks,
      surelyHeldBlocks,
      untilTick,
    });
    const crowdedOut = this.#pending.push(placed);
    if (crowdedOut !== null) this.#forgetPending(crowdedOut);
    return placed;
  }

  /** The first token came: the blocks are there, those too that were pushed out meanwhile. */
  confirm(placed: PlacedPrefix, nowMs: number): void {
    this.expire(nowMs);
    const { replicaIndex, blocks } = placed;
    if (placed.life !== this.#caches.life(replicaIndex)) return;
    // Expired ones are confirmed too: the prompt took long, but now it is there.
    if (!this.#pending.settle(placed) && placed.confirmed) return;
    placed.confirmed = true;
    const halves = placed.halves();
    if (this.#holders.size + blocks > this.#maxHolders) this.#makeRoom(replicaIndex, blocks, Number.POSITIVE_INFINITY);
    for (let at = blocks - 1; at >= placed.surelyHeldBlocks; at--) {
      const low = halves[2 * at]!;
      const high = halves[2 * at + 1]!;
      const block = this.#blocks.find(low, high);
      const holder = block === 0 ? 0 : this.#holders.find(block, replicaIndex);
      if (holder === 0) this.#hold(block === 0 ? this.#blocks.add(low, high) : block, replicaIndex, 0);
      else this.#holders.setPendingUntil(holder, 0);
    }
  }

  /** The request ended before its first token: blocks that only it promised are forgotten. */
  abandon(placed: PlacedPrefix): void {
    if (this.#pending.settle(placed)) this.#forgetPending(placed);
  }

  /**
   * The engine said how many leading blocks it had when this request came. Fewer than thought: the blocks beyond have
   * just been computed by this very request, so they stay, in doubt; falling short there a second time in a row means
   * that they are never found (another rendering of the prompt, no cache), and they are dropped. More than thought:
   * they are there now anyway.
   */
  correct(placed: PlacedPrefix, reportedBlocks: number): void {
    const { replicaIndex, surelyHeldBlocks } = placed;
    if (placed.life !== this.#caches.life(replicaIndex) || surelyHeldBlocks === 0) return;
    const reported = Math.max(0, Math.floor(reportedBlocks));
    const short = reported + SHORTFALL_TOLERANCE_BLOCKS < surelyHeldBlocks;
    this.#caches.learnTrust(replicaIndex, short ? reported / surelyHeldBlocks : 1);

    const halves = placed.halves();
    let drop = false;
    for (let at = short ? reported : 0; at < (drop ? placed.blocks : surelyHeldBlocks); at++) {
      const block = this.#blocks.find(halves[2 * at]!, halves[2 * at + 1]!);
      const holder = block === 0 ? 0 : this.#holders.find(block, replicaIndex);
      if (holder === 0) continue;
      if (short && this.#holders.doubted(holder)) drop = true;
      if (drop) this.#release(holder, replicaIndex);
      else this.#holders.setDoubted(holder, short);
    }
  }

  clear(replicaIndex: number): void {
    this.#widen(replicaIndex);
    this.#caches.newLife(replicaIndex);
    for (let holder = this.#holders.oldest(replicaIndex); holder !== 0; holder = this.#holders.oldest(replicaIndex))
      this.#release(holder, replicaIndex);
  }

  /** Forgets pending blocks whose time is up; done by each `place` and `confirm` too. */
  expire(nowMs: number): void {
    const tick = Math.floor(nowMs / TICK_MS);
    for (let first = this.#pending.first; first !== null && first.untilTick <= tick; first = this.#pending.first) {
      this.#pending.settle(first);
      this.#forgetPending(first);
    }
  }

  #ended(word: number, bits: number, length: number, out: HeldBlocks): void {
    for (let left = bits; left !== 0; left &= left - 1) {
      const index = word * 32 + 31 - Math.clz32(left & -left);
      const trusted = Math.floor(length * this.#caches.trust(index));
      out.gpu[index] = out.host[index] = out.disk[index] = trusted;
    }
  }

  #hold(block: number, replicaIndex: number, pendingUntil: number): void {
    this.#holders.add(block, replicaIndex, pendingUntil);
    this.#blocks.setHolder(block, replicaIndex);
  }

  #release(holder: number, replicaIndex: number): void {
    const block = this.#holders.blockOf(holder);
    this.#holders.remove(holder);
    this.#blocks.unsetHolder(block, replicaIndex);
  }

  /** Room for `blocks` more records in the whole: the fullest replica gives its oldest. */
  #makeRoom(replicaIndex: number, blocks: number, capacityBlocks: number): void {
    const most = this.#maxHolders - blocks;
    while (this.#holders.size > most) {
      const fullest = this.#holders.fullest();
      // All of one replica's surplus at once would empty it for its neighbours' sake: a little more than needed.
      let spare = Math.max(64, this.#holders.size - most);
      for (; spare > 0 && this.#holders.count(fullest) > 0; spare--)
        this.#release(this.#holders.oldest(fullest), fullest);
    }
    this.#trim(replicaIndex, capacityBlocks);
  }

  #trim(replicaIndex: number, capacityBlocks: number): void {
    while (this.#holders.count(replicaIndex) > capacityBlocks)
      this.#release(this.#holders.oldest(replicaIndex), replicaIndex);
  }

  /** Drops what is still pending by this request alone; a later one of the same prefix has a later time. */
  #forgetPending(placed: PlacedPrefix): void {
    const { replicaIndex, untilTick } = placed;
    if (placed.life !== this.#caches.life(replicaIndex)) return;
    const halves = placed.halves();
    for (let at = placed.surelyHeldBlocks; at < placed.blocks; at++) {
      const block = this.#blocks.find(halves[2 * at]!, halves[2 * at + 1]!);
      const holder = block === 0 ? 0 : this.#holders.find(block, replicaIndex);
      if (holder === 0) continue;
      const pendingUntil = this.#holders.pendingUntil(holder);
      if (pendingUntil !== 0 && pendingUntil <= untilTick) this.#release(holder, replicaIndex);
    }
  }

  #widen(replicaIndex: number): void {
    this.#blocks.widen(replicaIndex + 1);
    this.#holders.widen(replicaIndex + 1);
    this.#caches.widen(replicaIndex + 1);
  }
}
