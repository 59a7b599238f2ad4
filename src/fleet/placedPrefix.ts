/** The blocks that a placed request leaves on its replica. Made by `PrefixIndex.place`. */
export class PlacedPrefix {
  readonly replicaIndex: number;
  /** Of the replica's cache when this was placed; after a restart it is another one. */
  readonly life: number;
  readonly hashes: BigUint64Array;
  /** Blocks are pieces of text. */
  readonly ofText: boolean;
  /** Leading blocks that were entered; fewer than there are if the replica's cache is smaller than the prompt. */
  readonly blocks: number;
  /** Leading blocks that were thought to be there before. */
  readonly heldBlocks: number;
  /** Of these, the leading ones that were not just promised by a request still in its prompt. */
  readonly surelyHeldBlocks: number;
  readonly untilTick: number;
  confirmed = false;

  /** Neighbours in the pending queue. */
  before: PlacedPrefix | null = null;
  after: PlacedPrefix | null = null;
  queued = false;

  constructor(made: {
    replicaIndex: number;
    life: number;
    hashes: BigUint64Array;
    ofText: boolean;
    blocks: number;
    heldBlocks: number;
    surelyHeldBlocks: number;
    untilTick: number;
  }) {
    this.replicaIndex = made.replicaIndex;
    this.life = made.life;
    this.hashes = made.hashes;
    this.ofText = made.ofText;
    this.blocks = made.blocks;
    this.heldBlocks = made.heldBlocks;
    this.surelyHeldBlocks = made.surelyHeldBlocks;
    this.untilTick = made.untilTick;
  }

  /** The hashes as 32-bit halves, low one first (the platforms Node runs on are little-endian). */
  halves(): Uint32Array {
    return new Uint32Array(this.hashes.buffer, this.hashes.byteOffset, this.blocks * 2);
  }
}

/** Placed and not confirmed, by time of expiry: all wait equally long, so the order of placing is that order. */
export class PendingQueue {
  readonly #maxPending: number;
  first: PlacedPrefix | null = null;
  #last: PlacedPrefix | null = null;
  #size = 0;

  constructor(maxPending: number) {
    this.#maxPending = maxPending;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns the one that had to leave, if the queue was full. */
  push(placed: PlacedPrefix): PlacedPrefix | null {
    const crowdedOut = this.#size >= this.#maxPending ? this.first : null;
    if (crowdedOut !== null) this.settle(crowdedOut);
    placed.before = this.#last;
    if (this.#last === null) this.first = placed;
    else this.#last.after = placed;
    this.#last = placed;
    placed.queued = true;
    this.#size++;
    return crowdedOut;
  }

  /** Takes it out. False: it was not there any more. */
  settle(placed: PlacedPrefix): boolean {
    if (!placed.queued) return false;
    if (placed.before === null) this.first = placed.after;
    else placed.before.after = placed.after;
    if (placed.after === null) this.#last = placed.before;
    else placed.after.before = placed.before;
    placed.before = placed.after = null;
    placed.queued = false;
    this.#size--;
    return true;
  }
}
