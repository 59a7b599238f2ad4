import type { PricedReplica } from "./pricedReplica.ts";

/**
 * Ranks replicas for a key so that losing one moves only that one's keys, and they go to all the others (highest random
 * weight hashing, Thaler and Ravishankar 1998). It gives what a ring of virtual nodes gives, more evenly and without a
 * ring to keep. By the replica's id, so that a replica that comes back gets its keys back.
 */
export class Rendezvous {
  readonly #maxRemembered: number;
  readonly #hashById = new Map<string, number>();

  constructor(maxRemembered = 4096) {
    this.#maxRemembered = maxRemembered;
  }

  /** Ids whose hash is kept. */
  get remembered(): number {
    return this.#hashById.size;
  }

  /** 0..2^32−1; the replica with the highest one is the key's own. */
  weight(keyHash: number, replica: PricedReplica): number {
    return mixed(keyHash ^ Math.imul(this.#hashOf(replica.id), 0x9e3779b1));
  }

  #hashOf(id: string): number {
    let hash = this.#hashById.get(id);
    if (hash === undefined) {
      // Replicas come and go for ever; the few that are in use are hashed again soon enough.
      if (this.#hashById.size >= this.#maxRemembered) this.#hashById.clear();
      hash = hashText(id);
      this.#hashById.set(id, hash);
    }
    return hash;
  }
}

/** FNV-1a over UTF-16 units, then mixed: not for security, only for spreading. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return mixed(hash);
}

/** Both halves of a 64-bit hash in one of 32 bits. */
export function hash64(hash: bigint): number {
  return mixed(Number(hash & 0xffffffffn) ^ Math.imul(Number(hash >> 32n), 0x85ebca6b));
}

/** MurmurHash3's finaliser: each bit of the input moves each bit of the output half of the time. */
function mixed(value: number): number {
  let hash = value >>> 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
