import type { KvStored } from "#src/engines/events/kvEvent.ts";
import { chainRoot, hashTokenBlocks, keyedParent } from "#src/request/tokens/tokenChain.ts";

/**
 * The hashes of one event, the engine's and own ones, as 32-bit halves (low, high). Kept in scratch that all events
 * share, for they are applied one at a time, and an array of its own for each would cost more than reading it.
 */
export class StoredHashes {
  #engine = new BigUint64Array(1024);
  engineHalves = new Uint32Array(this.#engine.buffer);
  #own = new BigUint64Array(1024);
  ownHalves = new Uint32Array(this.#own.buffer);

  readEngine(engineHashes: BigUint64Array): void {
    if (this.#engine.length < engineHashes.length) {
      this.#engine = new BigUint64Array(2 * engineHashes.length);
      this.engineHalves = new Uint32Array(this.#engine.buffer);
    }
    this.#engine.set(engineHashes);
  }

  readEngineHash(engineHash: bigint): void {
    this.#engine[0] = engineHash;
  }

  /** The hash with these halves. */
  join(low: number, high: number): bigint {
    this.ownHalves[0] = low;
    this.ownHalves[1] = high;
    return this.#own[0]!;
  }

  /** `hash`, or what it gave when the event was recorded. */
  hashOrRead(event: KvStored, parent: bigint, ownBlockTokens: number): void {
    const { own, engineHashes, blockTokens } = event;
    if (own !== undefined && own.hashes !== null) {
      this.#roomForOwn(own.hashes.length);
      this.#own.set(own.hashes);
      return;
    }
    this.hash(event, parent, ownBlockTokens);
    if (own !== undefined) own.hashes = this.#own.slice(0, (engineHashes.length * blockTokens) / ownBlockTokens);
  }

  /** @param parent own hash of the block before the event's first one */
  hash({ engineHashes, tokenIds, blockTokens, blockKeys }: KvStored, parent: bigint, ownBlockTokens: number): void {
    const each = blockTokens / ownBlockTokens;
    const count = engineHashes.length;
    this.#roomForOwn(count * each);
    if (blockKeys === null) {
      hashTokenBlocks(parent, tokenIds, ownBlockTokens, this.#own);
      return;
    }
    let before = parent;
    for (let at = 0; at < count; at++) {
      const key = blockKeys[at] ?? null;
      if (key !== null) before = keyedParent(before, key);
      const tokens = tokenIds.subarray(at * blockTokens, (at + 1) * blockTokens);
      hashTokenBlocks(before, tokens, ownBlockTokens, this.#own, at * each);
      before = this.#own[(at + 1) * each - 1]!;
    }
  }

  #roomForOwn(count: number): void {
    if (this.#own.length >= count) return;
    this.#own = new BigUint64Array(2 * count);
    this.ownHalves = new Uint32Array(this.#own.buffer);
  }
}

/** Roots of chains; nearly all events of an engine have the same. */
export class ChainRoots {
  #last: { readonly adapter: string | null; readonly salt: string | null; readonly root: bigint } | null = null;
  readonly #blockTokens: number;

  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens;
  }

  of(adapter: string | null, salt: string | null): bigint {
    if (this.#last === null || this.#last.adapter !== adapter || this.#last.salt !== salt)
      this.#last = { adapter, salt, root: chainRoot(adapter, salt, this.#blockTokens) };
    return this.#last.root;
  }
}
