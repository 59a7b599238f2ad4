import { anEighthMore, grownUint32, powerOfTwo } from "./growing.ts";

const FIRST_SETS = 256;
const FIRST_POOL_WORDS = 1024;
const TIERS = 3;
/** Ids below are sets of one holder, written as that holder; from it on, places of larger sets. */
const FIRST_LARGE = 2 ** 24;
/** Sizes of room for a set's holders: powers of two up to this exponent. */
const CLASSES = 22;

/** The set without holders. */
export const NOBODY = 0;

/** A replica and the tiers on which it has a block. */
function holder(replica: number, mask: number): number {
  return (replica << TIERS) | mask;
}

/**
 * Sets of holders (replica and tiers), each kept once however many blocks have it: neighbours in a chain mostly have the
 * same holders, and a walk along the chain need only look where the id changes. A set without a user is gone, so
 * whoever stores an id retains it. Typed arrays; memory is bounded by the users' holders together (at most eight bytes
 * for each, and 32 for the set).
 */
export class HolderSets {
  /** Holders in order of replicas, each set in a room of a power of two words. */
  #pool = new Uint32Array(FIRST_POOL_WORDS);
  #poolUsed = 1;
  /** By class, the first free room; the next one stands in its first word. */
  readonly #freeRooms = new Uint32Array(CLASSES);
  #at = new Uint32Array(FIRST_SETS);
  #length = new Uint32Array(FIRST_SETS);
  #users = new Uint32Array(FIRST_SETS);
  /** Next set of the same bucket, or of the free list. */
  #chain = new Uint32Array(FIRST_SETS);
  #buckets = new Uint32Array(FIRST_SETS);
  #free = 0;
  #used = 0;
  #size = 0;
  /** What `with` makes of it, before it is known whether that exists. */
  #made = new Uint32Array(8);
  #madeLength = 0;
  /** The last answer of `with`. */
  #lastSet = NOBODY;
  #lastHolder = 0;
  #lastAnswer = NOBODY;

  /** Sets of two or more holders. */
  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    const { byteLength } = this.#pool;
    return byteLength + 4 * this.#at.byteLength + this.#buckets.byteLength;
  }

  /** Tiers on which the replica has blocks of this set. */
  maskOf(set: number, replica: number): number {
    if (set < FIRST_LARGE) return set >>> TIERS === replica ? set & 7 : 0;
    const at = this.#at[set - FIRST_LARGE]!;
    let from = at;
    let to = at + this.#length[set - FIRST_LARGE]!;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (this.#pool[middle]! >>> TIERS < replica) from = middle + 1;
      else to = middle;
    }
    const found = from < at + this.#length[set - FIRST_LARGE]! ? this.#pool[from]! : 0;
    return found >>> TIERS === replica ? found & 7 : 0;
  }

  /** The same set, but with this mask for this replica; 0 takes it out. */
  with(set: number, replica: number, mask: number): number {
    const wanted = holder(replica, mask);
    if (set === this.#lastSet && wanted === this.#lastHolder) return this.#lastAnswer;
    const answer = set < FIRST_LARGE ? this.#withSmall(set, replica, mask) : this.#withLarge(set, replica, mask);
    this.#lastSet = set;
    this.#lastHolder = wanted;
    this.#lastAnswer = answer;
    return answer;
  }

  retain(set: number): void {
    if (set >= FIRST_LARGE) this.#users[set - FIRST_LARGE]!++;
  }

  release(set: number): void {
    if (set >= FIRST_LARGE && --this.#users[set - FIRST_LARGE]! === 0) this.#remove(set - FIRST_LARGE);
  }

  /** Adds the holders to bits by replica: those on GPU, those on GPU or host, and all. */
  addTo(set: number, gpu: Uint32Array, host: Uint32Array, any: Uint32Array): void {
    if (set < FIRST_LARGE) {
      if (set !== NOBODY) addHolder(set, gpu, host, any);
      return;
    }
    const at = this.#at[set - FIRST_LARGE]!;
    const end = at + this.#length[set - FIRST_LARGE]!;
    for (let from = at; from < end; from++) addHolder(this.#pool[from]!, gpu, host, any);
  }

  #withSmall(set: number, replica: number, mask: number): number {
    const only = set >>> TIERS;
    if (set === NOBODY || only === replica) return mask === 0 ? NOBODY : holder(replica, mask);
    if (mask === 0) return set;
    this.#made[0] = only < replica ? set : holder(replica, mask);
    this.#made[1] = only < replica ? holder(replica, mask) : set;
    this.#madeLength = 2;
    return this.#intern();
  }

  #withLarge(set: number, replica: number, mask: number): number {
    const length = this.#length[set - FIRST_LARGE]!;
    if (this.#made.length <= length) this.#made = new Uint32Array(2 * length);
    const made = this.#made;
    const pool = this.#pool;
    let from = this.#at[set - FIRST_LARGE]!;
    const end = from + length;
    let to = 0;
    while (from < end && pool[from]! >>> TIERS < replica) made[to++] = pool[from++]!;
    if (mask !== 0) made[to++] = holder(replica, mask);
    if (from < end && pool[from]! >>> TIERS === replica) from++;
    while (from < end) made[to++] = pool[from++]!;
    this.#madeLength = to;
    return to === 1 ? made[0]! : this.#intern();
  }

  /** The id of the set in `#made`. */
  #intern(): number {
    const made = this.#made;
    const length = this.#madeLength;
    const bucket = this.#bucket(made, 0, length);
    search: for (let one = this.#buckets[bucket]!; one !== 0; one = this.#chain[one]!) {
      if (this.#length[one] !== length) continue;
      const at = this.#at[one]!;
      for (let each = 0; each < length; each++) if (this.#pool[at + each] !== made[each]) continue search;
      return FIRST_LARGE + one;
    }
    return FIRST_LARGE + this.#add();
  }

  #add(): number {
    const length = this.#madeLength;
    const one = this.#take();
    const at = this.#takeRoom(length);
    for (let each = 0; each < length; each++) this.#pool[at + each] = this.#made[each]!;
    this.#at[one] = at;
    this.#length[one] = length;
    this.#users[one] = 0;
    const bucket = this.#bucket(this.#made, 0, length);
    this.#chain[one] = this.#buckets[bucket]!;
    this.#buckets[bucket] = one;
    this.#size++;
    return one;
  }

  #remove(one: number): void {
    const at = this.#at[one]!;
    const length = this.#length[one]!;
    const bucket = this.#bucket(this.#pool, at, length);
    let before = 0;
    for (let each = this.#buckets[bucket]!; each !== one; each = this.#chain[each]!) before = each;
    if (before === 0) this.#buckets[bucket] = this.#chain[one]!;
    else this.#chain[before] = this.#chain[one]!;
    const size = roomClass(length);
    this.#pool[at] = this.#freeRooms[size]!;
    this.#freeRooms[size] = at;
    this.#chain[one] = this.#free;
    this.#free = one;
    this.#size--;
    const id = FIRST_LARGE + one;
    // Its id may come to mean another set.
    if (this.#lastSet === id || this.#lastAnswer === id) this.#lastSet = this.#lastHolder = this.#lastAnswer = 0;
  }

  #take(): number {
    if (this.#free !== 0) {
      const one = this.#free;
      this.#free = this.#chain[one]!;
      return one;
    }
    if (this.#used + 1 >= this.#at.length) this.#grow();
    return ++this.#used;
  }

  /** Only called when the free list is empty, so every place up to `#used` is a set. */
  #grow(): void {
    const room = anEighthMore(this.#at.length, FIRST_LARGE);
    this.#at = grownUint32(this.#at, room);
    this.#length = grownUint32(this.#length, room);
    this.#users = grownUint32(this.#users, room);
    this.#chain = grownUint32(this.#chain, room);
    if (this.#buckets.length >= this.#used) return;
    this.#buckets = new Uint32Array(2 * this.#buckets.length);
    for (let one = 1; one <= this.#used; one++) {
      const bucket = this.#bucket(this.#pool, this.#at[one]!, this.#length[one]!);
      this.#chain[one] = this.#buckets[bucket]!;
      this.#buckets[bucket] = one;
    }
  }

  #takeRoom(length: number): number {
    const size = roomClass(length);
    const free = this.#freeRooms[size]!;
    if (free !== 0) {
      this.#freeRooms[size] = this.#pool[free]!;
      return free;
    }
    const words = 2 ** size;
    const at = this.#poolUsed;
    if (at + words > this.#pool.length)
      this.#pool = grownUint32(this.#pool, Math.max(at + words, anEighthMore(this.#pool.length, 2 ** 31)));
    this.#poolUsed += words;
    return at;
  }

  #bucket(words: Uint32Array, at: number, length: number): number {
    let hash = length;
    for (let each = at; each < at + length; each++) hash = Math.imul(hash ^ words[each]!, 0x9e3779b1) ^ (hash >>> 15);
    return ((hash ^ (hash >>> 16)) >>> 0) & (this.#buckets.length - 1);
  }
}

function roomClass(length: number): number {
  return 32 - Math.clz32(powerOfTwo(length) - 1);
}

function addHolder(one: number, gpu: Uint32Array, host: Uint32Array, any: Uint32Array): void {
  const replica = one >>> TIERS;
  const word = replica >>> 5;
  const bit = 1 << (replica & 31);
  any[word]! |= bit;
  if ((one & 3) !== 0) host[word]! |= bit;
  if ((one & 1) !== 0) gpu[word]! |= bit;
}
