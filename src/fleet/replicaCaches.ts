import { grownUint32, powerOfTwo } from "./growing.ts";

/** Until the engine or the configuration says: the KV of an 8B model on an 80 GB GPU. */
const ASSUMED_CAPACITY_TOKENS = 450_000;
/** Weight of one answer in a replica's trust: about the last twenty count. */
const TRUST_WEIGHT = 0.05;
/** Nearly full trust counts as full: predictions should not lose a block to rounding for ever. */
const FULL_TRUST = 0.98;

/** What is modelled of each replica's prefix cache, by replica index. */
export class ReplicaCaches {
  #capacityTokens = new Float64Array(0);
  #trust = new Float64Array(0);
  #life = new Uint32Array(0);

  widen(replicas: number): void {
    const had = this.#life.length;
    if (replicas <= had) return;
    const room = powerOfTwo(replicas);
    const capacityTokens = new Float64Array(room).fill(ASSUMED_CAPACITY_TOKENS);
    capacityTokens.set(this.#capacityTokens);
    const trust = new Float64Array(room).fill(1);
    trust.set(this.#trust);
    this.#capacityTokens = capacityTokens;
    this.#trust = trust;
    this.#life = grownUint32(this.#life, room);
  }

  capacity(replica: number): number {
    return this.#capacityTokens[replica] ?? ASSUMED_CAPACITY_TOKENS;
  }

  setCapacity(replica: number, tokens: number): void {
    this.#capacityTokens[replica] = Math.max(0, tokens);
  }

  /** Changes with each `newLife`: what was said of an earlier life is void. */
  life(replica: number): number {
    return this.#life[replica] ?? 0;
  }

  newLife(replica: number): void {
    this.#life[replica]!++;
    this.#trust[replica] = 1;
  }

  trust(replica: number): number {
    return this.#trust[replica] ?? 1;
  }

  learnTrust(replica: number, reportedShare: number): void {
    const now = this.#trust[replica]! + TRUST_WEIGHT * (Math.min(1, reportedShare) - this.#trust[replica]!);
    this.#trust[replica] = reportedShare >= 1 && now > FULL_TRUST ? 1 : now;
  }
}
