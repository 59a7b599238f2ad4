import type { KvCleared, KvEvent, KvMoved, KvRemoved, KvStored, KvTier } from "#src/engines/events/kvEvent.ts";
import { READ_AHEAD } from "../blockTable.ts";
import { DISK, GPU, HOST, TIERS, type TierIndex } from "./handleTable.ts";
import { ChainRoots, StoredHashes } from "./storedHashes.ts";
import { ToldBlocks, type ToldSurroundings } from "./toldBlocks.ts";
import type { Doubt, DropReason } from "./viewState.ts";

/** The index around one replica's events. */
export interface EventSurroundings extends ToldSurroundings {
  /** Whether there is room for so many more (block, replica) pairs. To make it, the fullest view may be dropped. */
  hasRoom(holders: number, nowMs: number): boolean;
  /**
   * Tokens of an own block where the engine's have so many: a divisor of them, the same for all replicas of a pool.
   * Null: there is none.
   */
  ownBlockTokens(replicaIndex: number, engineBlockTokens: number, nowMs: number): number | null;
}

/** Since the view began. Blocks are the engine's. */
export interface EventCounts {
  storedBlocks: number;
  removedBlocks: number;
  /** Of cache groups whose blocks say nothing about whole prefixes. */
  skippedBlocks: number;
  /** Named by hashes only, and the hashes are not known. */
  unplacedBlocks: number;
  /** Stored after a block that is not there. */
  orphanedBlocks: number;
  unknownRemovals: number;
}

/** Told where events contradict what was told before, or cannot be followed. `drop` lets everything go. */
export interface EventProblems {
  doubt(why: Doubt, nowMs: number): void;
  drop(why: DropReason, nowMs: number): void;
}

const TIER_OF: Readonly<Record<KvTier, TierIndex>> = { gpu: GPU, host: HOST, disk: DISK, remote: DISK };

/** Models have a few. */
const MAX_OTHER_GROUPS = 64;

const hashes = new StoredHashes();

/**
 * Applies one replica's events to what is told of its blocks. The engine's hashes are only handles: they lead from an
 * event to own blocks, which are hashed from the event's token ids as prompts are.
 */
export class ToldEvents {
  readonly #replica: number;
  readonly #around: EventSurroundings;
  readonly #counts: EventCounts;
  readonly #problems: EventProblems;
  #told: ToldBlocks | null = null;
  /** It names blocks by their hashes only, as offloading does. */
  #tellsByName = false;
  #roots = new ChainRoots(0);
  #ownBlockTokens = 0;
  #engineBlockTokens = 0;
  /** The cache group that is followed: the first one of full attention. */
  #group: number | null = null;
  /** Groups that are not, as far as was told. */
  readonly #otherGroups = new Set<number>();

  constructor(replicaIndex: number, around: EventSurroundings, counts: EventCounts, problems: EventProblems) {
    this.#replica = replicaIndex;
    this.#around = around;
    this.#counts = counts;
    this.#problems = problems;
  }

  /** (block, replica) pairs that this accounts for. */
  get holders(): number {
    return this.#told?.holders ?? 0;
  }

  get bytes(): number {
    return this.#told?.bytes ?? 0;
  }

  /** Tokens in GPU memory. */
  get gpuTokens(): number {
    return (this.#told?.gpuBlocks ?? 0) * this.#ownBlockTokens;
  }

  /** Of the engine's blocks; null: none told yet. */
  get engineBlockTokens(): number | null {
    return this.#engineBlockTokens === 0 ? null : this.#engineBlockTokens;
  }

  /** Of the blocks that prompts are hashed by; null: none told yet. */
  get ownBlockTokens(): number | null {
    return this.#ownBlockTokens === 0 ? null : this.#ownBlockTokens;
  }

  /** Lets everything go; `model`: as a guess it stays. */
  letGo(to: "forget" | "model"): void {
    this.#told?.letGo(to);
    this.#told = null;
    this.#group = null;
    this.#otherGroups.clear();
  }

  /** What comes next is kept in the pool's blocks as they are then. */
  forgetBlockSize(): void {
    this.#ownBlockTokens = 0;
  }

  /** A store, a removal or a move. */
  apply(event: Exclude<KvEvent, KvCleared>, nowMs: number): void {
    if (event.kind === "stored") this.#stored(event, nowMs);
    else if (event.kind === "removed") this.#removed(event, nowMs);
    else this.#moved(event, nowMs);
  }

  #stored(event: KvStored, nowMs: number): void {
    const { engineHashes, blockTokens } = event;
    // Room is made for blocks of the size that an event names: only if it has one is that size borne out by its bytes.
    if (engineHashes.length === 0) return;
    if (!event.fullAttention && this.#group === event.group) {
      // TensorRT-LLM tells windows only: the largest is known to be so once one of its events has come.
      this.letGo("forget");
      this.#problems.doubt("history_incomplete", nowMs);
    }
    if (!event.fullAttention || (this.#group ?? event.group) !== event.group) {
      this.#counts.skippedBlocks += engineHashes.length;
      if (this.#otherGroups.size < MAX_OTHER_GROUPS) this.#otherGroups.add(event.group);
      return;
    }
    this.#group = event.group;
    this.#counts.storedBlocks += engineHashes.length;
    const tier = TIER_OF[event.tier];
    if (blockTokens === 0) {
      this.#storedByName(engineHashes, tier, nowMs);
      return;
    }
    const told = this.#blocksOf(blockTokens, nowMs);
    if (told === null) {
      this.#problems.drop("block_size", nowMs);
      return;
    }
    const parent =
      event.parent === null ? this.#roots.of(event.loraName, event.salt) : this.#ownHash(event.parent, told);
    if (parent === null) {
      this.#storedAfterUnknown(event, told, tier, nowMs);
      return;
    }
    this.#enter(event, parent, told, tier, nowMs);
  }

  /** Blocks whose parent is gone can be placed if they are on another tier already, and so can those after them. */
  #storedAfterUnknown(event: KvStored, told: ToldBlocks, tier: TierIndex, nowMs: number): void {
    const { engineHashes, tokenIds, blockTokens, blockKeys } = event;
    hashes.readEngine(engineHashes);
    let known = 0;
    for (; known < engineHashes.length; known++) {
      const slot = findHandle(told, known);
      if (slot < 0) break;
      this.#addCopy(told, slot, tier, nowMs);
    }
    if (known === engineHashes.length) return;
    const parent = known === 0 ? null : this.#ownHash(engineHashes[known - 1]!, told);
    if (parent === null) {
      this.#counts.orphanedBlocks += engineHashes.length;
      this.#problems.doubt("parent_unknown", nowMs);
      return;
    }
    const rest: KvStored = {
      ...event,
      engineHashes: engineHashes.subarray(known),
      tokenIds: tokenIds.subarray(known * blockTokens),
      blockKeys: blockKeys?.slice(known) ?? null,
    };
    this.#enter(rest, parent, told, tier, nowMs);
  }

  /** @param parent own hash of the block before the event's first one */
  #enter(event: KvStored, parent: bigint, told: ToldBlocks, tier: TierIndex, nowMs: number): void {
    hashes.hashOrRead(event, parent, this.#ownBlockTokens);
    hashes.readEngine(event.engineHashes);
    const { engineHalves, ownHalves } = hashes;
    const step = 2 * told.blocksEach;
    const ownBlocks = event.engineHashes.length * told.blocksEach;
    for (let at = 0; at < event.engineHashes.length; at++) {
      if (at % READ_AHEAD === 0) this.#around.blocks.readAhead(ownHalves, at * told.blocksEach, ownBlocks);
      const low = engineHalves[2 * at]!;
      const high = engineHalves[2 * at + 1]!;
      const slot = told.find(low, high);
      if (slot >= 0 && this.#isBlock(told.lastBlock(slot), (at + 1) * step - 2)) {
        this.#addCopy(told, slot, tier, nowMs);
        continue;
      }
      if (slot >= 0) {
        told.remove(slot);
        this.#problems.doubt("hash_reused", nowMs);
      }
      if (!this.#around.hasRoom(told.blocksEach, nowMs)) this.#problems.drop("index_full", nowMs);
      if (this.#told === null) return;
      told.add(low, high, ownHalves, at * step, tier);
    }
  }

  /** Whether the block has the own hash that stands at `at`. */
  #isBlock(block: number, at: number): boolean {
    const { blocks } = this.#around;
    return blocks.low(block) === hashes.ownHalves[at] && blocks.high(block) === hashes.ownHalves[at + 1];
  }

  /** Of the last of the own blocks that the handle stands for; null: the handle is not known. */
  #ownHash(handle: bigint, told: ToldBlocks): bigint | null {
    hashes.readEngineHash(handle);
    const slot = told.find(hashes.engineHalves[0]!, hashes.engineHalves[1]!);
    if (slot < 0) return null;
    const block = told.lastBlock(slot);
    return hashes.join(this.#around.blocks.low(block), this.#around.blocks.high(block));
  }

  #addCopy(told: ToldBlocks, slot: number, tier: TierIndex, nowMs: number): void {
    if (!told.addCopy(slot, tier)) this.#problems.doubt("too_many_copies", nowMs);
  }

  /** Offloading names blocks that were stored before by their hashes. */
  #storedByName(engineHashes: BigUint64Array, tier: TierIndex, nowMs: number): void {
    const told = this.#told;
    this.#tellsByName = true;
    told?.rememberDeparted();
    hashes.readEngine(engineHashes);
    for (let at = 0; at < engineHashes.length; at++) {
      const slot = findHandle(told, at);
      if (told !== null && slot >= 0) this.#addCopy(told, slot, tier, nowMs);
      else if (!this.#storedAfterLeaving(at, tier, nowMs)) this.#counts.unplacedBlocks++;
    }
  }

  /** The name of a block may come after the block's removal from elsewhere. False: it is not known. */
  #storedAfterLeaving(at: number, tier: TierIndex, nowMs: number): boolean {
    if (this.#told === null) return false;
    if (!this.#around.hasRoom(this.#told.blocksEach, nowMs)) this.#problems.drop("index_full", nowMs);
    return this.#told?.addDeparted(hashes.engineHalves[2 * at]!, hashes.engineHalves[2 * at + 1]!, tier) ?? false;
  }

  #removed({ engineHashes, tier, group }: KvRemoved, nowMs: number): void {
    if (this.#isOther(group)) return;
    const told = this.#told;
    this.#counts.removedBlocks += engineHashes.length;
    hashes.readEngine(engineHashes);
    for (let at = 0; at < engineHashes.length; at++) {
      const slot = findHandle(told, at);
      const from = told === null || slot < 0 ? null : whereCopied(told, slot, tier);
      if (told === null || from === null) this.#removedUnknown(tier, nowMs);
      else told.removeCopy(slot, from);
    }
  }

  #moved({ engineHashes, from, to, group }: KvMoved, nowMs: number): void {
    if (this.#isOther(group)) return;
    const told = this.#told;
    hashes.readEngine(engineHashes);
    for (let at = 0; at < engineHashes.length; at++) {
      const slot = findHandle(told, at);
      const tier = told === null || slot < 0 ? null : whereCopied(told, slot, from);
      if (told === null || tier === null) this.#removedUnknown(from, nowMs);
      else {
        // First there, then no longer here: a handle without any copy is gone.
        this.#addCopy(told, slot, TIER_OF[to], nowMs);
        told.removeCopy(slot, tier);
      }
    }
  }

  /** Other groups may lose blocks before the one that is followed has any. */
  #isOther(group: number): boolean {
    return this.#group === null ? this.#otherGroups.has(group) : this.#group !== group;
  }

  /** On slower tiers blocks may have been named only by hashes that are not known, which leaves no mark. */
  #removedUnknown(tier: KvTier | null, nowMs: number): void {
    this.#counts.unknownRemovals++;
    if (tier === null || tier === "gpu") this.#problems.doubt("removal_unknown", nowMs);
  }

  /** Null: blocks of this size cannot be kept beside those that there are, or beside the pool's. */
  #blocksOf(engineBlockTokens: number, nowMs: number): ToldBlocks | null {
    if (this.#told !== null && this.#engineBlockTokens === engineBlockTokens) return this.#told;
    this.#engineBlockTokens = engineBlockTokens;
    if (this.holders > 0) return null;
    const own = this.#around.ownBlockTokens(this.#replica, engineBlockTokens, nowMs);
    if (own === null) return null;
    if (own !== this.#ownBlockTokens) this.#roots = new ChainRoots(own);
    this.#ownBlockTokens = own;
    this.#told = new ToldBlocks(this.#replica, engineBlockTokens / own, this.#around);
    if (this.#tellsByName) this.#told.rememberDeparted();
    return this.#told;
  }
}

/** Where the handle at this place of `hashes` is kept; -1: nowhere. */
function findHandle(told: ToldBlocks | null, at: number): number {
  return told?.find(hashes.engineHalves[2 * at]!, hashes.engineHalves[2 * at + 1]!) ?? -1;
}

/** The tier that one copy is to be taken from; null: there is none where it should be. */
function whereCopied(told: ToldBlocks, slot: number, tier: KvTier | null): TierIndex | null {
  if (tier !== null) return told.hasCopy(slot, TIER_OF[tier]) ? TIER_OF[tier] : null;
  return TIERS.find((each) => told.hasCopy(slot, each)) ?? null;
}
