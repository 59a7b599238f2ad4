import { ON_GPU } from "../blockIndex.ts";
import type { BlockTable } from "../blockTable.ts";
import { DepartedBlocks } from "./departedBlocks.ts";
import { GPU, HandleTable, TIERS, type TierIndex } from "./handleTable.ts";

/** The index around what one replica told. */
export interface ToldSurroundings {
  readonly blocks: BlockTable;
  readonly modelled: {
    has(block: number, replicaIndex: number): boolean;
    surrender(block: number, replicaIndex: number): boolean;
    adopt(block: number, replicaIndex: number): void;
  };
  /** (block, replica) pairs that any replica told of. */
  readonly room: { precise: number };
}

/**
 * The blocks that one replica's engine told of: its hashes as handles, and for each tier how many copies it stores. A
 * block that is stored twice has to be removed twice, on each tier by itself.
 */
export class ToldBlocks {
  readonly #replica: number;
  readonly #around: ToldSurroundings;
  readonly #handles: HandleTable;
  /** By own block and tier: handles beyond the first that stand for it. */
  readonly #aliases = new Map<number, number>();
  /** Null: they are not remembered. */
  #departed: DepartedBlocks | null = null;
  #gpuBlocks = 0;
  /** The next one of its chain probably has the id after it. */
  #lastAdded = 0;

  /** @param blocksEach own blocks that make up one of the engine's */
  constructor(replicaIndex: number, blocksEach: number, around: ToldSurroundings) {
    this.#replica = replicaIndex;
    this.#around = around;
    this.#handles = new HandleTable(blocksEach);
  }

  get blocksEach(): number {
    return this.#handles.blocksEach;
  }

  /** (block, replica) pairs that this accounts for. */
  get holders(): number {
    return this.#handles.size * this.#handles.blocksEach;
  }

  /** Own blocks in GPU memory. */
  get gpuBlocks(): number {
    return this.#gpuBlocks;
  }

  get bytes(): number {
    return this.#handles.bytes + (this.#departed?.bytes ?? 0);
  }

  /** Where a handle is kept, until another one is added or goes; -1: nowhere. */
  find(low: number, high: number): number {
    return this.#handles.find(low, high);
  }

  /** The last of the own blocks that a handle stands for. */
  lastBlock(slot: number): number {
    return this.#handles.block(slot, this.#handles.blocksEach - 1);
  }

  /** A handle that is not there, with its own blocks' hashes as halves from `at` on. */
  add(low: number, high: number, hashes: Uint32Array, at: number, tier: TierIndex): void {
    const handles = this.#handles;
    const { blocks, room } = this.#around;
    const slot = handles.add(low, high, tier);
    room.precise += handles.blocksEach;
    for (let part = 0; part < handles.blocksEach; part++) {
      const block = blocks.findOrAdd(hashes[at + 2 * part]!, hashes[at + 2 * part + 1]!, this.#lastAdded + 1);
      this.#lastAdded = block;
      handles.setBlock(slot, part, block);
      this.#hold(block, tier);
    }
  }

  /** False: more than can be counted. */
  addCopy(slot: number, tier: TierIndex): boolean {
    const handles = this.#handles;
    const isFirst = handles.copies(slot, tier) === 0;
    if (!handles.addCopy(slot, tier)) return false;
    if (isFirst) for (let part = 0; part < handles.blocksEach; part++) this.#hold(handles.block(slot, part), tier);
    return true;
  }

  hasCopy(slot: number, tier: TierIndex): boolean {
    return this.#handles.copies(slot, tier) > 0;
  }

  /** There must be one. With the last copy on the last tier goes the handle. */
  removeCopy(slot: number, tier: TierIndex): void {
    const handles = this.#handles;
    handles.removeCopy(slot, tier);
    if (handles.copies(slot, tier) > 0) return;
    if (this.#departed !== null && !handles.hasCopies(slot)) this.#departed.note(handles, slot, this.#around.blocks);
    for (let part = 0; part < handles.blocksEach; part++) this.#unhold(handles.block(slot, part), tier);
    if (handles.hasCopies(slot)) return;
    handles.remove(slot);
    this.#around.room.precise -= handles.blocksEach;
  }

  /** From now on, for `addDeparted`. */
  rememberDeparted(): void {
    this.#departed ??= new DepartedBlocks(this.blocksEach);
  }

  /** A handle that is not there but was; false: that is too long ago, or it never was. */
  addDeparted(low: number, high: number, tier: TierIndex): boolean {
    const hashes = this.#departed?.find(low, high) ?? null;
    if (hashes === null) return false;
    this.add(low, high, hashes, 0, tier);
    return true;
  }

  /** All copies, and the handle with them. */
  remove(slot: number): void {
    const left = TIERS.map((tier) => this.#handles.copies(slot, tier));
    for (const tier of TIERS) for (let copies = left[tier]!; copies > 0; copies--) this.removeCopy(slot, tier);
  }

  /**
   * Lets everything go, for good. `model`: what is in GPU memory is taken to be there until own traffic would have
   * pushed it out, blocks entered later first, for they are further from the roots.
   */
  letGo(to: "forget" | "model"): void {
    const { blocks, modelled, room } = this.#around;
    room.precise -= this.holders;
    for (const block of this.#handles.allBlocks()) {
      const onGpu = (blocks.maskOf(block, this.#replica) & ON_GPU) !== 0;
      const isModelled = onGpu && modelled.has(block, this.#replica);
      const adopted = onGpu && !isModelled && to === "model";
      if (adopted) modelled.adopt(block, this.#replica);
      blocks.setMask(block, this.#replica, adopted || isModelled ? ON_GPU : 0);
    }
  }

  #hold(block: number, tier: TierIndex): void {
    const { blocks, modelled } = this.#around;
    const mask = blocks.maskOf(block, this.#replica);
    const bit = 1 << tier;
    if ((mask & bit) === 0) blocks.setMask(block, this.#replica, mask | bit);
    else if (tier !== GPU || !modelled.surrender(block, this.#replica)) {
      const alias = 4 * block + tier;
      this.#aliases.set(alias, (this.#aliases.get(alias) ?? 0) + 1);
      return;
    }
    if (tier === GPU) this.#gpuBlocks++;
  }

  #unhold(block: number, tier: TierIndex): void {
    const { blocks } = this.#around;
    if (this.#aliases.size > 0) {
      const alias = 4 * block + tier;
      const others = this.#aliases.get(alias) ?? 0;
      if (others > 1) this.#aliases.set(alias, others - 1);
      else if (others === 1) this.#aliases.delete(alias);
      if (others > 0) return;
    }
    blocks.setMask(block, this.#replica, blocks.maskOf(block, this.#replica) & ~(1 << tier));
    if (tier === GPU) this.#gpuBlocks--;
  }
}
