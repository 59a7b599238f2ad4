import type { BlockIndex, HeldBlocks } from "./blockIndex.ts";
import { BlockTable } from "./blockTable.ts";
import { HolderRoom } from "./holderRoom.ts";
import { ModelledIndex, type BlockChain } from "./modelledIndex.ts";
import type { PlacedPrefix } from "./placedPrefix.ts";
import { PreciseView } from "./precise/preciseView.ts";
import { PrefixWalk } from "./prefixWalk.ts";

export type { BlockChain, PlacedPrefix };

export interface PrefixIndexOptions {
  /** Bound on (block, replica) pairs over the whole fleet; at most 60 bytes each. At least 1024. */
  readonly maxHolders?: number;
  /** How long a placed request may take to its first token before its blocks are forgotten again. */
  readonly pendingMs?: number;
  /** Bound on requests that are placed and not confirmed; past it the oldest are forgotten. */
  readonly maxPending?: number;
}

/** Tokens of an own block for an engine with blocks of so many; null: they cannot be made to fit. */
export type ChooseBlockTokens = (replicaIndex: number, engineBlockTokens: number, nowMs: number) => number | null;

/**
 * Which replica holds which prefix. What the engines' KV events tell is kept exactly (`view`); where a replica's events
 * do not tell all, own traffic is taken into account (ModelledIndex). Both are kept in one table of blocks, so that one
 * walk answers for all replicas. Memory is bounded by `maxHolders`: modelled blocks make room for told ones, and when
 * there are too many of these, the fullest view is dropped and says so.
 */
export class PrefixIndex implements BlockIndex {
  readonly #room: HolderRoom;
  readonly #blocks: BlockTable;
  readonly #modelled: ModelledIndex;
  readonly #walk = new PrefixWalk();
  readonly #chooseBlockTokens: ChooseBlockTokens;
  readonly #views: PreciseView[] = [];

  constructor(options: PrefixIndexOptions = {}, chooseBlockTokens: ChooseBlockTokens = (_, engine) => engine) {
    this.#room = new HolderRoom(Math.max(1024, options.maxHolders ?? 2 ** 21));
    this.#blocks = new BlockTable(this.#room.max);
    this.#chooseBlockTokens = chooseBlockTokens;
    this.#modelled = new ModelledIndex({
      blocks: this.#blocks,
      room: this.#room,
      pendingMs: options.pendingMs ?? 60_000,
      maxPending: options.maxPending ?? 50_000,
      isExact: (replicaIndex) => this.isExact(replicaIndex),
    });
  }

  /** (block, replica) pairs. */
  get size(): number {
    return this.#modelled.size + this.#room.precise;
  }

  /** Distinct blocks. */
  get blocks(): number {
    return this.#blocks.size;
  }

  /** Memory of all tables. */
  get bytes(): number {
    let bytes = this.#blocks.bytes + this.#modelled.bytes;
    for (const view of this.#views) bytes += view.bytes;
    return bytes;
  }

  /** Requests placed and not yet confirmed, abandoned or expired. */
  get pending(): number {
    return this.#modelled.pending;
  }

  /** Blocks held by one replica, on whatever tier. */
  heldBy(replicaIndex: number): number {
    return this.#modelled.count(replicaIndex) + (this.#views[replicaIndex]?.holders ?? 0);
  }

  /**
   * Tokens that the replica's GPU memory holds of all prompts together, as far as is known.
   *
   * @param blockTokens of the blocks that own traffic leaves
   */
  heldTokens(replicaIndex: number, blockTokens: number): number {
    const told = this.#views[replicaIndex]?.gpuTokens ?? 0;
    return this.isExact(replicaIndex) ? told : told + this.#modelled.count(replicaIndex) * blockTokens;
  }

  /** What the replica's KV events tell. */
  view(replicaIndex: number): PreciseView {
    this.#widen(replicaIndex);
    return this.#views[replicaIndex]!;
  }

  /** Whether the replica's events tell all that it holds, so that nothing has to be guessed. */
  isExact(replicaIndex: number): boolean {
    return this.#views[replicaIndex]?.state.state === "live";
  }

  /** Reported over predicted hits of this replica, 0..1, recent answers counting most; guesses are scaled by it. */
  trust(replicaIndex: number): number {
    return this.#modelled.trust(replicaIndex);
  }

  /** Modelled capacity of the replica's cache in tokens; 0: it caches no prefixes. */
  setCapacity(replicaIndex: number, tokens: number): void {
    this.#widen(replicaIndex);
    this.#modelled.setCapacity(replicaIndex, tokens);
    if (tokens <= 0) this.#modelled.clear(replicaIndex);
  }

  /** @param ofText the hashes are of pieces of text, which no events tell of */
  match(
    hashes: BigUint64Array,
    candidates: ArrayLike<{ readonly index: number }>,
    out: HeldBlocks,
    ofText = false,
  ): void {
    this.#walk.match(this.#blocks, hashes, candidates, out);
    for (let at = 0; at < candidates.length; at++) {
      const { index } = candidates[at]!;
      const trust = this.#modelled.trust(index);
      if (trust === 1 || (!ofText && this.isExact(index))) continue;
      out.gpu[index] = Math.floor(out.gpu[index]! * trust);
      out.host[index] = Math.floor(out.host[index]! * trust);
      out.disk[index] = Math.floor(out.disk[index]! * trust);
    }
  }

  /** A request was placed: its blocks count at once, and are forgotten if it is not confirmed in time. */
  place(replicaIndex: number, chain: BlockChain, nowMs: number): PlacedPrefix {
    this.#widen(replicaIndex);
    return this.#modelled.place(replicaIndex, chain, nowMs);
  }

  /** The first token came: the blocks are there, those too that were pushed out meanwhile. */
  confirm(placed: PlacedPrefix, nowMs: number): void {
    this.#modelled.confirm(placed, nowMs);
  }

  /** The request ended before its first token: blocks that only it promised are forgotten. */
  abandon(placed: PlacedPrefix): void {
    this.#modelled.abandon(placed);
  }

  /**
   * The engine said how many leading blocks it had when this request came. Fewer than thought: the blocks beyond have
   * just been computed by this very request, so they stay, in doubt; falling short there a second time in a row means
   * that they are never found (another rendering of the prompt, no cache), and they are dropped. More than thought:
   * they are there now anyway. What events tell is not corrected.
   */
  correct(placed: PlacedPrefix, reportedBlocks: number): void {
    this.#modelled.correct(placed, reportedBlocks);
  }

  /** Another process answers at this replica: nothing is left, and what its predecessor still tells is void. */
  restarted(replicaIndex: number, nowMs: number): void {
    this.#widen(replicaIndex);
    this.#modelled.clear(replicaIndex);
    this.#views[replicaIndex]!.engineRestarted(nowMs);
  }

  /** Forgets the replica; its index may come to be another's. */
  clear(replicaIndex: number): void {
    this.#widen(replicaIndex);
    this.#modelled.clear(replicaIndex);
    this.#views[replicaIndex]!.forget();
    this.#views[replicaIndex] = this.#newView(replicaIndex);
  }

  /** Forgets pending blocks whose time is up; done by each `place` and `confirm` too. */
  expire(nowMs: number): void {
    this.#modelled.expire(nowMs);
  }

  #hasRoom(holders: number, nowMs: number): boolean {
    const { max } = this.#room;
    if (this.size + holders <= max) return true;
    this.#modelled.yieldTo(holders);
    while (this.size + holders > max) {
      let fullest = this.#views[0]!;
      for (const view of this.#views) if (view.holders > fullest.holders) fullest = view;
      if (fullest.holders === 0) return false;
      fullest.drop("index_full", nowMs);
    }
    return true;
  }

  #widen(replicaIndex: number): void {
    if (replicaIndex < this.#views.length) return;
    this.#walk.widen(replicaIndex + 1);
    this.#modelled.widen(replicaIndex + 1);
    while (this.#views.length <= replicaIndex) this.#views.push(this.#newView(this.#views.length));
  }

  #newView(replicaIndex: number): PreciseView {
    return new PreciseView(replicaIndex, {
      blocks: this.#blocks,
      modelled: this.#modelled,
      room: this.#room,
      hasRoom: (holders, nowMs) => this.#hasRoom(holders, nowMs),
      ownBlockTokens: this.#chooseBlockTokens,
    });
  }
}
