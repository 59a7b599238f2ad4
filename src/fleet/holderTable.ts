import { grownUint32, powerOfTwo } from "./growing.ts";

const FIRST_HOLDERS = 1024;

/**
 * One record per (block, replica), found by both, and each replica's records in order of use. Ids from 1; 0 means none.
 * Typed arrays that grow by doubling up to `maxHolders`.
 */
export class HolderTable {
  readonly #maxHolders: number;
  #block = new Uint32Array(FIRST_HOLDERS + 1);
  #replica = new Uint16Array(FIRST_HOLDERS + 1);
  #older = new Uint32Array(FIRST_HOLDERS + 1);
  #newer = new Uint32Array(FIRST_HOLDERS + 1);
  /** Next record of the same bucket, or of the free list. */
  #chain = new Uint32Array(FIRST_HOLDERS + 1);
  #pendingUntil = new Uint32Array(FIRST_HOLDERS + 1);
  #doubted = new Uint8Array(FIRST_HOLDERS + 1);
  #buckets = new Uint32Array(FIRST_HOLDERS);
  /** By replica. */
  #oldest = new Uint32Array(32);
  #newest = new Uint32Array(32);
  #count = new Uint32Array(32);
  #free = 0;
  #used = 0;
  #size = 0;

  constructor(maxHolders: number) {
    this.#maxHolders = maxHolders;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return [
      this.#block,
      this.#replica,
      this.#older,
      this.#newer,
      this.#chain,
      this.#pendingUntil,
      this.#doubted,
      this.#buckets,
      this.#oldest,
      this.#newest,
      this.#count,
    ].reduce((sum, array) => sum + array.byteLength, 0);
  }

  /** Makes room for replicas with indices below `replicas`. */
  widen(replicas: number): void {
    if (replicas <= this.#count.length) return;
    const room = powerOfTwo(replicas);
    this.#oldest = grownUint32(this.#oldest, room);
    this.#newest = grownUint32(this.#newest, room);
    this.#count = grownUint32(this.#count, room);
  }

  count(replica: number): number {
    return this.#count[replica] ?? 0;
  }

  /** The replica with the most records. */
  fullest(): number {
    let fullest = 0;
    for (let replica = 1; replica < this.#count.length; replica++)
      if (this.#count[replica]! > this.#count[fullest]!) fullest = replica;
    return fullest;
  }

  /** The least recently used record of the replica. */
  oldest(replica: number): number {
    return this.#oldest[replica] ?? 0;
  }

  blockOf(holder: number): number {
    return this.#block[holder]!;
  }

  /** The tick until which this record waits to be confirmed; 0: it is confirmed. */
  pendingUntil(holder: number): number {
    return this.#pendingUntil[holder]!;
  }

  setPendingUntil(holder: number, tick: number): void {
    this.#pendingUntil[holder] = tick;
  }

  /** Whether the engine was last seen not to have had it. */
  doubted(holder: number): boolean {
    return this.#doubted[holder] === 1;
  }

  setDoubted(holder: number, doubted: boolean): void {
    this.#doubted[holder] = doubted ? 1 : 0;
  }

  find(block: number, replica: number): number {
    let holder = this.#buckets[this.#bucket(block, replica)]!;
    while (holder !== 0 && (this.#block[holder] !== block || this.#replica[holder] !== replica))
      holder = this.#chain[holder]!;
    return holder;
  }

  /** A new record, the most recently used of its replica. It must not be there yet. */
  add(block: number, replica: number, pendingUntil: number): number {
    const holder = this.#take();
    this.#block[holder] = block;
    this.#replica[holder] = replica;
    this.#pendingUntil[holder] = pendingUntil;
    this.#doubted[holder] = 0;
    this.#enterBucket(holder);
    this.#append(holder, replica);
    this.#count[replica]!++;
    this.#size++;
    return holder;
  }

  /** Makes it the most recently used of its replica. */
  touch(holder: number): void {
    const replica = this.#replica[holder]!;
    if (this.#newest[replica] === holder) return;
    this.#unlink(holder, replica);
    this.#append(holder, replica);
  }

  remove(holder: number): void {
    const replica = this.#replica[holder]!;
    const bucket = this.#bucket(this.#block[holder]!, replica);
    let before = 0;
    let at = this.#buckets[bucket]!;
    while (at !== holder) {
      before = at;
      at = this.#chain[at]!;
    }
    if (before === 0) this.#buckets[bucket] = this.#chain[holder]!;
    else this.#chain[before] = this.#chain[holder]!;
    this.#unlink(holder, replica);
    this.#chain[holder] = this.#free;
    this.#free = holder;
    this.#count[replica]!--;
    this.#size--;
  }

  /** Ids and indices are small and dense: multiplying by odd constants (2^32/φ and a prime) spreads them. */
  #bucket(block: number, replica: number): number {
    const mixed = Math.imul(block, 0x9e3779b1) ^ Math.imul(replica + 1, 0x85ebca6b);
    return ((mixed ^ (mixed >>> 15)) >>> 0) & (this.#buckets.length - 1);
  }

  #enterBucket(holder: number): void {
    const bucket = this.#bucket(this.#block[holder]!, this.#replica[holder]!);
    this.#chain[holder] = this.#buckets[bucket]!;
    this.#buckets[bucket] = holder;
  }

  #append(holder: number, replica: number): void {
    const newest = this.#newest[replica]!;
    this.#older[holder] = newest;
    this.#newer[holder] = 0;
    if (newest === 0) this.#oldest[replica] = holder;
    else this.#newer[newest] = holder;
    this.#newest[replica] = holder;
  }

  #unlink(holder: number, replica: number): void {
    const older = this.#older[holder]!;
    const newer = this.#newer[holder]!;
    if (older === 0) this.#oldest[replica] = newer;
    else this.#newer[older] = newer;
    if (newer === 0) this.#newest[replica] = older;
    else this.#older[newer] = older;
  }

  #take(): number {
    if (this.#free !== 0) {
      const holder = this.#free;
      this.#free = this.#chain[holder]!;
      return holder;
    }
    if (this.#used + 1 >= this.#block.length) this.#grow();
    return ++this.#used;
  }

  /** Only called when the free list is empty, so every id up to `#used` is a record. */
  #grow(): void {
    const room = Math.min(this.#maxHolders, (this.#block.length - 1) * 2) + 1;
    if (room <= this.#block.length) throw new RangeError(`more than ${this.#maxHolders} holder records`);
    this.#block = grownUint32(this.#block, room);
    this.#older = grownUint32(this.#older, room);
    this.#newer = grownUint32(this.#newer, room);
    this.#chain = grownUint32(this.#chain, room);
    this.#pendingUntil = grownUint32(this.#pendingUntil, room);
    const replica = new Uint16Array(room);
    replica.set(this.#replica);
    this.#replica = replica;
    const doubted = new Uint8Array(room);
    doubted.set(this.#doubted);
    this.#doubted = doubted;
    this.#buckets = new Uint32Array(powerOfTwo(room - 1));
    for (let holder = 1; holder <= this.#used; holder++) this.#enterBucket(holder);
  }
}
