import { ON_GPU } from "./blockIndex.ts";
import type { BlockTable } from "./blockTable.ts";
import type { HolderRoom } from "./holderRoom.ts";
import { ModelledTable } from "./modelledTable.ts";
import { PendingQueue, PlacedPrefix } from "./placedPrefix.ts";
import { ReplicaCaches } from "./replicaCaches.ts";

/** A prompt as the index sees it: part of `Identity`. */
export interface BlockChain {
  readonly hashes: BigUint64Array;
  readonly blockTokens: number;
  /** Blocks are pieces of text, of which engines do not tell in their events. Absent: they are token ids. */
  readonly approximate?: boolean;
}

/** Pending times are kept in tenths of a second: 32 bits of them are 13 years. */
const TICK_MS = 100;
/** Blocks by which an answer may fall short without meaning anything: an engine always recomputes the last one. */
const SHORTFALL_TOLERANCE_BLOCKS = 1;

/**
 * What own traffic says of the replicas' caches: what was sent there is taken to be there, least recently used blocks
 * leave when the modelled capacity is reached. A chain is touched from its last block to its first, so its tail leaves
 * before its root, as in an engine. Where a replica's KV events are followed, only what was just promised is kept here,
 * until the events tell it or its time is up.
 *
 * A block that is both modelled and told by events is told by events: there is a record here exactly where the bit for
 * GPU memory is set by this class.
 */
export class ModelledIndex {
  readonly #room: HolderRoom;
  readonly #blocks: BlockTable;
  readonly #records: ModelledTable;
  readonly #caches = new ReplicaCaches();
  readonly #pending: PendingQueue;
  readonly #pendingTicks: number;
  readonly #isExact: (replicaIndex: number) => boolean;
  #ids = new Uint32Array(1024);

  constructor(made: {
    blocks: BlockTable;
    room: HolderRoom;
    pendingMs: number;
    maxPending: number;
    /** Whether the replica's events tell all that it holds. */
    isExact: (replicaIndex: number) => boolean;
  }) {
    this.#blocks = made.blocks;
    this.#room = made.room;
    this.#records = new ModelledTable(made.room.max);
    this.#pending = new PendingQueue(made.maxPending);
    this.#pendingTicks = Math.ceil(made.pendingMs / TICK_MS);
    this.#isExact = made.isExact;
  }

  get size(): number {
    return this.#records.size;
  }

  get bytes(): number {
    return this.#records.bytes;
  }

  /** Requests placed and not yet confirmed, abandoned or expired. */
  get pending(): number {
    return this.#pending.size;
  }

  count(replicaIndex: number): number {
    return this.#records.count(replicaIndex);
  }

  trust(replicaIndex: number): number {
    return this.#caches.trust(replicaIndex);
  }

  widen(replicas: number): void {
    this.#records.widen(replicas);
    this.#caches.widen(replicas);
  }

  setCapacity(replicaIndex: number, tokens: number): void {
    this.#caches.setCapacity(replicaIndex, tokens);
  }

  place(replicaIndex: number, chain: BlockChain, nowMs: number): PlacedPrefix {
    this.expire(nowMs);
    const untilTick = Math.ceil(Math.max(0, nowMs) / TICK_MS) + this.#pendingTicks;
    const { hashes, approximate: ofText = false } = chain;
    const capacityBlocks = Math.min(this.#caches.capacity(replicaIndex) / chain.blockTokens, this.#room.most / 2);
    const blocks = Math.min(hashes.length, Math.floor(capacityBlocks));
    this.#evict(this.#room.most - blocks);
    this.#trim(replicaIndex, capacityBlocks);

    let heldBlocks = blocks;
    let surelyHeldBlocks = blocks;
    const ids = this.#enter(hashes, blocks);
    for (let at = blocks - 1; at >= 0; at--) {
      const block = ids[at]!;
      const mask = this.#blocks.maskOf(block, replicaIndex);
      if ((mask & ON_GPU) === 0) {
        heldBlocks = surelyHeldBlocks = at;
        this.#hold(block, replicaIndex, mask, untilTick, ofText);
        continue;
      }
      const record = this.#records.find(block, replicaIndex);
      if (record === 0) continue;
      this.#records.touch(record);
      if (this.#records.pendingUntil(record) !== 0) {
        surelyHeldBlocks = at;
        this.#records.setPendingUntil(record, untilTick);
      }
    }
    this.#trim(replicaIndex, capacityBlocks);
    const placed = new PlacedPrefix({
      replicaIndex,
      life: this.#caches.life(replicaIndex),
      hashes,
      ofText,
      blocks,
      heldBlocks,
      surelyHeldBlocks,
      untilTick,
    });
    const crowdedOut = this.#pending.push(placed);
    if (crowdedOut !== null) this.#forgetPending(crowdedOut);
    return placed;
  }

  confirm(placed: PlacedPrefix, nowMs: number): void {
    this.expire(nowMs);
    const { replicaIndex, ofText } = placed;
    // The engine itself is about to tell.
    if (!ofText && this.#isExact(replicaIndex)) return;
    if (placed.life !== this.#caches.life(replicaIndex)) return;
    // Expired ones are confirmed too: the prompt took long, but now it is there.
    if (!this.#pending.settle(placed) && placed.confirmed) return;
    placed.confirmed = true;
    const blocks = Math.min(placed.blocks, this.#room.most);
    this.#evict(this.#room.most - blocks);
    const ids = this.#enter(placed.hashes, blocks, placed.surelyHeldBlocks);
    for (let at = blocks - 1; at >= placed.surelyHeldBlocks; at--) {
      const block = ids[at]!;
      const mask = this.#blocks.maskOf(block, replicaIndex);
      if ((mask & ON_GPU) === 0) this.#hold(block, replicaIndex, mask, 0, ofText);
      else {
        const record = this.#records.find(block, replicaIndex);
        if (record !== 0) this.#records.setPendingUntil(record, 0);
      }
    }
  }

  abandon(placed: PlacedPrefix): void {
    if (this.#pending.settle(placed)) this.#forgetPending(placed);
  }

  correct(placed: PlacedPrefix, reportedBlocks: number): void {
    const { replicaIndex, surelyHeldBlocks } = placed;
    if (!placed.ofText && this.#isExact(replicaIndex)) return;
    if (placed.life !== this.#caches.life(replicaIndex) || surelyHeldBlocks === 0) return;
    const reported = Math.max(0, Math.floor(reportedBlocks));
    const short = reported + SHORTFALL_TOLERANCE_BLOCKS < surelyHeldBlocks;
    this.#caches.learnTrust(replicaIndex, short ? reported / surelyHeldBlocks : 1);

    const halves = placed.halves();
    let drop = false;
    for (let at = short ? reported : 0; at < (drop ? placed.blocks : surelyHeldBlocks); at++) {
      const record = this.#find(halves, at, replicaIndex);
      if (record === 0) continue;
      if (short && this.#records.doubted(record)) drop = true;
      if (drop) this.#release(record, replicaIndex);
      else this.#records.setDoubted(record, short);
    }
  }

  /** Forgets pending blocks whose time is up. */
  expire(nowMs: number): void {
    const tick = Math.floor(nowMs / TICK_MS);
    for (let first = this.#pending.first; first !== null && first.untilTick <= tick; first = this.#pending.first) {
      this.#pending.settle(first);
      this.#forgetPending(first);
    }
  }

  /** The replica's cache is empty, and what was placed there before says nothing any more. */
  clear(replicaIndex: number): void {
    this.#caches.newLife(replicaIndex);
    for (let record = this.#records.oldest(replicaIndex); record !== 0; record = this.#records.oldest(replicaIndex))
      this.#release(record, replicaIndex);
  }

  /** The replica's events tell all it holds from now on: what was modelled of it goes, but for promises and for text. */
  supersede(replicaIndex: number): void {
    let next = 0;
    for (let record = this.#records.oldest(replicaIndex); record !== 0; record = next) {
      next = this.#records.newerThan(record);
      if (this.#records.pendingUntil(record) === 0 && !this.#records.ofText(record))
        this.#release(record, replicaIndex);
    }
  }

  has(block: number, replicaIndex: number): boolean {
    return this.#records.count(replicaIndex) > 0 && this.#records.find(block, replicaIndex) !== 0;
  }

  /** The block was told by events, which answer for its bit from now on. False: it was not modelled. */
  surrender(block: number, replicaIndex: number): boolean {
    if (this.#records.count(replicaIndex) === 0) return false;
    const record = this.#records.find(block, replicaIndex);
    if (record === 0) return false;
    this.#records.remove(record);
    return true;
  }

  /** The other way round: events no longer answer for this block, whose bit is set. It is the most recently used. */
  adopt(block: number, replicaIndex: number): void {
    this.#records.add(block, replicaIndex, 0, false);
  }

  /** Lets go of the fullest replicas' oldest until at most `most` are left (a little more, lest it be called at once). */
  #evict(most: number): void {
    while (this.#records.size > Math.max(0, most)) {
      const fullest = this.#records.fullest();
      // All of one replica's surplus at once would empty it for its neighbours' sake: a little more than needed.
      let spare = Math.max(64, this.#records.size - most);
      for (; spare > 0 && this.#records.count(fullest) > 0; spare--)
        this.#release(this.#records.oldest(fullest), fullest);
    }
  }

  /** Makes room for records of others. */
  yieldTo(holders: number): void {
    this.#evict(this.#room.most - holders);
  }

  /** The blocks with these hashes, the new ones in the order of the chain, though they come to be held in the other. */
  #enter(hashes: BigUint64Array, blocks: number, from = 0): Uint32Array {
    if (this.#ids.length < blocks) this.#ids = new Uint32Array(2 * blocks);
    const halves = new Uint32Array(hashes.buffer, hashes.byteOffset, blocks * 2);
    let block = 0;
    for (let at = from; at < blocks; at++)
      this.#ids[at] = block = this.#blocks.findOrAdd(halves[2 * at]!, halves[2 * at + 1]!, block + 1);
    return this.#ids;
  }

  #hold(block: number, replicaIndex: number, mask: number, pendingUntil: number, ofText: boolean): void {
    this.#records.add(block, replicaIndex, pendingUntil, ofText);
    this.#blocks.setMask(block, replicaIndex, mask | ON_GPU);
  }

  #release(record: number, replicaIndex: number): void {
    const block = this.#records.blockOf(record);
    this.#records.remove(record);
    this.#blocks.setMask(block, replicaIndex, this.#blocks.maskOf(block, replicaIndex) & ~ON_GPU);
  }

  #trim(replicaIndex: number, capacityBlocks: number): void {
    while (this.#records.count(replicaIndex) > capacityBlocks)
      this.#release(this.#records.oldest(replicaIndex), replicaIndex);
  }

  /** Drops what is still pending by this request alone; a later one of the same prefix has a later time. */
  #forgetPending(placed: PlacedPrefix): void {
    const { replicaIndex, untilTick } = placed;
    if (placed.life !== this.#caches.life(replicaIndex)) return;
    const halves = placed.halves();
    for (let at = placed.surelyHeldBlocks; at < placed.blocks; at++) {
      const record = this.#find(halves, at, replicaIndex);
      if (record === 0) continue;
      const pendingUntil = this.#records.pendingUntil(record);
      if (pendingUntil !== 0 && pendingUntil <= untilTick) this.#release(record, replicaIndex);
    }
  }

  #find(halves: Uint32Array, at: number, replicaIndex: number): number {
    const block = this.#blocks.find(halves[2 * at]!, halves[2 * at + 1]!);
    return block === 0 ? 0 : this.#records.find(block, replicaIndex);
  }
}
