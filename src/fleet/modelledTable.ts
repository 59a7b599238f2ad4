import { anEighthMore, bucketsFor, grownUint32, powerOfTwo } from "./growing.ts";

const FIRST_RECORDS = 1024;
const FIRST_REPLICAS = 32;

/** What is noted of a modelled block. */
const DOUBTED = 1;
const TEXT = 2;

/**
 * Blocks that replicas are thought to have, from own traffic: one record per (block, replica), found by both, and each
 * replica's records in order of use. Ids from 1; 0 means none. Typed arrays that grow up to `maxRecords`.
 */
export class ModelledTable {
  readonly #maxRecords: number;
  #block = new Uint32Array(FIRST_RECORDS + 1);
  #replica = new Uint16Array(FIRST_RECORDS + 1);
  #older = new Uint32Array(FIRST_RECORDS + 1);
  #newer = new Uint32Array(FIRST_RECORDS + 1);
  /** Next record of the same bucket, or of the free list. */
  #chain = new Uint32Array(FIRST_RECORDS + 1);
  #pendingUntil = new Uint32Array(FIRST_RECORDS + 1);
  #notes = new Uint8Array(FIRST_RECORDS + 1);
  #buckets = new Uint32Array(bucketsFor(FIRST_RECORDS));
  /** By replica. */
  #oldest = new Uint32Array(FIRST_REPLICAS);
  #newest = new Uint32Array(FIRST_REPLICAS);
  #count = new Uint32Array(FIRST_REPLICAS);
  #free = 0;
  #used = 0;
  #size = 0;

  constructor(maxRecords: number) {
    this.#maxRecords = maxRecords;
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
      this.#notes,
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

  /** The next more recently used record of the same replica; 0: there is none. */
  newerThan(record: number): number {
    return this.#newer[record]!;
  }

  blockOf(record: number): number {
    return this.#block[record]!;
  }

  /** The tick until which this record waits to be confirmed; 0: it is confirmed. */
  pendingUntil(record: number): number {
    return this.#pendingUntil[record]!;
  }

  setPendingUntil(record: number, tick: number): void {
    this.#pendingUntil[record] = tick;
  }

  /** Whether the engine was last seen not to have had it. */
  doubted(record: number): boolean {
    return (this.#notes[record]! & DOUBTED) !== 0;
  }

  setDoubted(record: number, doubted: boolean): void {
    if (doubted) this.#notes[record]! |= DOUBTED;
    else this.#notes[record]! &= ~DOUBTED;
  }

  /** Whether it is a piece of text, of which no engine will ever tell. */
  ofText(record: number): boolean {
    return (this.#notes[record]! & TEXT) !== 0;
  }

  find(block: number, replica: number): number {
    let record = this.#buckets[this.#bucket(block, replica)]!;
    while (record !== 0 && (this.#block[record] !== block || this.#replica[record] !== replica))
      record = this.#chain[record]!;
    return record;
  }

  /** A new record, the most recently used of its replica. It must not be there yet. */
  add(block: number, replica: number, pendingUntil: number, ofText: boolean): void {
    const record = this.#take();
    this.#block[record] = block;
    this.#replica[record] = replica;
    this.#pendingUntil[record] = pendingUntil;
    this.#notes[record] = ofText ? TEXT : 0;
    this.#enterBucket(record);
    this.#append(record, replica);
    this.#count[replica]!++;
    this.#size++;
  }

  /** Makes it the most recently used of its replica. */
  touch(record: number): void {
    const replica = this.#replica[record]!;
    if (this.#newest[replica] === record) return;
    this.#unlink(record, replica);
    this.#append(record, replica);
  }

  remove(record: number): void {
    const replica = this.#replica[record]!;
    const bucket = this.#bucket(this.#block[record]!, replica);
    let before = 0;
    for (let each = this.#buckets[bucket]!; each !== record; each = this.#chain[each]!) before = each;
    if (before === 0) this.#buckets[bucket] = this.#chain[record]!;
    else this.#chain[before] = this.#chain[record]!;
    this.#unlink(record, replica);
    this.#chain[record] = this.#free;
    this.#free = record;
    this.#count[replica]!--;
    this.#size--;
  }

  /** Ids and indices are small and dense: multiplying by odd constants (2^32/φ and a prime) spreads them. */
  #bucket(block: number, replica: number): number {
    const mixed = Math.imul(block, 0x9e3779b1) ^ Math.imul(replica + 1, 0x85ebca6b);
    return ((mixed ^ (mixed >>> 15)) >>> 0) & (this.#buckets.length - 1);
  }

  #enterBucket(record: number): void {
    const bucket = this.#bucket(this.#block[record]!, this.#replica[record]!);
    this.#chain[record] = this.#buckets[bucket]!;
    this.#buckets[bucket] = record;
  }

  #append(record: number, replica: number): void {
    const newest = this.#newest[replica]!;
    this.#older[record] = newest;
    this.#newer[record] = 0;
    if (newest === 0) this.#oldest[replica] = record;
    else this.#newer[newest] = record;
    this.#newest[replica] = record;
  }

  #unlink(record: number, replica: number): void {
    const older = this.#older[record]!;
    const newer = this.#newer[record]!;
    if (older === 0) this.#oldest[replica] = newer;
    else this.#newer[older] = newer;
    if (newer === 0) this.#newest[replica] = older;
    else this.#older[newer] = older;
  }

  #take(): number {
    if (this.#free !== 0) {
      const record = this.#free;
      this.#free = this.#chain[record]!;
      return record;
    }
    if (this.#used + 1 >= this.#block.length) this.#grow();
    return ++this.#used;
  }

  /** Only called when the free list is empty, so every id up to `#used` is a record. */
  #grow(): void {
    const room = anEighthMore(this.#used, this.#maxRecords) + 1;
    if (room <= this.#block.length) throw new RangeError(`more than ${this.#maxRecords} modelled blocks`);
    this.#block = grownUint32(this.#block, room);
    this.#older = grownUint32(this.#older, room);
    this.#newer = grownUint32(this.#newer, room);
    this.#chain = grownUint32(this.#chain, room);
    this.#pendingUntil = grownUint32(this.#pendingUntil, room);
    const replica = new Uint16Array(room);
    replica.set(this.#replica);
    this.#replica = replica;
    const notes = new Uint8Array(room);
    notes.set(this.#notes);
    this.#notes = notes;
    const buckets = bucketsFor(room);
    if (buckets === this.#buckets.length) return;
    this.#buckets = new Uint32Array(buckets);
    for (let record = 1; record <= this.#used; record++) this.#enterBucket(record);
  }
}
