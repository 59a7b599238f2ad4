import type { Random } from "#src/determinism/random.ts";
import type { KvEvent, KvEventBatch, KvTier } from "#src/engines/events/kvEvent.ts";
import { chainRoot, hashTokenBlocks, keyedParent } from "#src/request/tokens/tokenChain.ts";

/** What a prompt is, to an engine and to the router. */
export interface ModelPrompt {
  readonly tokens: readonly number[];
  readonly adapter: string | null;
  readonly salt: string | null;
  /** By engine block: media. */
  readonly keys: readonly (string | null)[];
}

export interface ModelEngineOptions {
  readonly blockTokens: number;
  readonly ownBlockTokens: number;
  readonly gpuBlocks: number;
  readonly hostBlocks: number;
  readonly diskBlocks: number;
  /** Part of all its hashes, as `PYTHONHASHSEED` is of vLLM's. */
  readonly hashSeed: number;
  /** Tells only what vLLM has a form for on the wire. */
  readonly likeVllm?: boolean;
}

interface Block {
  readonly handle: bigint;
  readonly parent: Block | null;
  readonly tokens: readonly number[];
  readonly adapter: string | null;
  readonly salt: string | null;
  readonly key: string | null;
  readonly at: number;
  readonly ownHashes: BigUint64Array;
  gpuCopies: number;
  onHost: boolean;
  onDisk: boolean;
  used: number;
}

/**
 * An engine's prefix cache as plainly as possible, with every way in which blocks come, move, double and go, and the
 * events that tell of it. What it holds is the truth that views are held against.
 */
export class ModelEngine {
  readonly options: ModelEngineOptions;
  readonly #random: Random;
  readonly #blocks = new Map<bigint, Block>();
  #events: KvEvent[] = [];
  #clock = 0;
  #gpuCopies = 0;
  /** All batches since the process started. */
  log: KvEventBatch[] = [];
  #hashSeed: number;

  constructor(options: ModelEngineOptions, random: Random) {
    this.options = options;
    this.#random = random;
    this.#hashSeed = options.hashSeed;
  }

  /** Another process: empty, with numbers from 0 on, and perhaps other hashes. */
  restart(): void {
    this.#blocks.clear();
    this.#gpuCopies = 0;
    this.#events = [];
    this.log = [];
    if (this.#chance(0.5)) this.#hashSeed = this.#random.below(2 ** 31);
  }

  /** Computes a prompt: what leads is reused, from the first miss on all is computed and stored, again if need be. */
  run(prompt: ModelPrompt, reuse = true): void {
    this.#clock++;
    const chain = this.#chainOf(prompt).slice(0, Math.floor(this.options.gpuBlocks / 2));
    const reusable = reuse ? chain.length : 0;
    let hits = 0;
    while (hits < reusable && chain[hits]!.gpuCopies > 0) hits++;
    // What lies on slower tiers is brought back, as far as it goes on.
    while (hits < reusable && (chain[hits]!.onHost || chain[hits]!.onDisk)) {
      this.#store(chain.slice(hits, hits + 1), chain);
      hits++;
    }
    for (const block of chain) block.used = this.#clock;
    for (let at = hits; at < chain.length;) {
      const end = Math.min(chain.length, at + 1 + this.#random.below(6));
      this.#store(chain.slice(at, end), chain);
      at = end;
    }
  }

  clear(): void {
    this.#blocks.clear();
    this.#gpuCopies = 0;
    this.#events.push({ kind: "cleared" });
  }

  /** Takes one block from GPU memory that is perhaps in the middle of its chain. */
  evictAnywhere(): void {
    const held = [...this.#blocks.values()].filter(({ gpuCopies }) => gpuCopies > 0);
    if (held.length > 0) this.#evict(held[this.#random.below(held.length)]!);
  }

  /** The step is over: what happened is published. Null: nothing did. */
  publish(): KvEventBatch | null {
    for (const [handle, { gpuCopies, onHost, onDisk }] of this.#blocks)
      if (gpuCopies === 0 && !onHost && !onDisk) this.#blocks.delete(handle);
    if (this.#events.length === 0) return null;
    const batch = { rank: 0, seq: this.log.length, publishedMs: 0, events: this.#events, unreadableEvents: 0 };
    this.#events = [];
    this.log.push(batch);
    return batch;
  }

  /** Leading own blocks of the prompt that lie on these tiers. */
  leading(prompt: ModelPrompt, ...tiers: readonly KvTier[]): number {
    const { blockTokens, ownBlockTokens } = this.options;
    let blocks = 0;
    for (const handle of this.#handles(prompt)) {
      const block = this.#blocks.get(handle);
      if (block === undefined || !tiers.some((tier) => isOn(block, tier))) break;
      blocks++;
    }
    return (blocks * blockTokens) / ownBlockTokens;
  }

  /** Different own blocks in GPU memory. */
  get gpuOwnBlocks(): number {
    const own = new Set<bigint>();
    for (const block of this.#blocks.values())
      if (block.gpuCopies > 0) for (const hash of block.ownHashes) own.add(hash);
    return own.size;
  }

  #store(blocks: readonly Block[], keep: readonly Block[]): void {
    for (const block of blocks) {
      while (this.#gpuCopies >= this.options.gpuBlocks) this.#evictLeast(keep);
      block.gpuCopies++;
      this.#gpuCopies++;
    }
    this.#tell(blocks, "gpu");
  }

  /** The least recently used, and of these the one furthest from its root. */
  #evictLeast(keep: readonly Block[]): void {
    let least: Block | null = null;
    for (const block of this.#blocks.values()) {
      if (block.gpuCopies === 0 || (keep.includes(block) && block.gpuCopies < 2)) continue;
      if (least === null || block.used < least.used || (block.used === least.used && block.at > least.at))
        least = block;
    }
    if (least === null) throw new Error("a prompt that is larger than the cache");
    this.#evict(least);
  }

  #evict(block: Block): void {
    block.gpuCopies--;
    this.#gpuCopies--;
    const { handle } = block;
    if (block.gpuCopies > 0 || block.onHost || this.options.hostBlocks === 0) {
      this.#events.push(this.#removed(block, "gpu"));
    } else {
      this.#makeHostRoom();
      block.onHost = true;
      if (!this.options.likeVllm && this.#chance(0.3)) {
        this.#events.push({
          kind: "moved",
          engineHashes: BigUint64Array.of(handle),
          from: "gpu",
          to: "host",
          group: 0,
        });
      } else {
        if (this.#chance(0.5)) this.#tell([block], "host");
        else this.#tellByName(block, "host");
        this.#events.push(this.#removed(block, "gpu"));
      }
    }
  }

  #makeHostRoom(): void {
    const onHost = [...this.#blocks.values()].filter((block) => block.onHost);
    if (onHost.length < this.options.hostBlocks) return;
    const out = onHost[this.#random.below(onHost.length)]!;
    const onDisk = [...this.#blocks.values()].filter((block) => block.onDisk).length;
    if (!out.onDisk && onDisk < this.options.diskBlocks) {
      out.onDisk = true;
      this.#tellByName(out, this.#chance(0.5) ? "disk" : "remote");
    }
    out.onHost = false;
    this.#events.push(this.#removed(out, "host"));
    if (out.onDisk && this.#chance(0.3)) {
      out.onDisk = false;
      this.#events.push(this.#removed(out, "disk"));
    }
  }

  #removed(block: Block, tier: KvTier): KvEvent {
    const only = [block.gpuCopies > 0, block.onHost, block.onDisk].every((held) => !held);
    const named = !this.options.likeVllm && only && this.#chance(0.3) ? null : tier;
    return { kind: "removed", engineHashes: BigUint64Array.of(block.handle), tier: named, group: 0 };
  }

  #tell(blocks: readonly Block[], tier: KvTier): void {
    if (blocks.length === 0) return;
    const { blockTokens } = this.options;
    const first = blocks[0]!;
    const keys = blocks.map(({ key }) => key);
    this.#events.push({
      kind: "stored",
      engineHashes: BigUint64Array.from(blocks, ({ handle }) => handle),
      parent: first.parent?.handle ?? null,
      tokenIds: Uint32Array.from(blocks.flatMap(({ tokens }) => tokens)),
      blockTokens,
      tier,
      group: 0,
      fullAttention: true,
      loraName: first.adapter,
      salt: first.at === 0 ? first.salt : null,
      blockKeys: keys.some((key) => key !== null) ? keys : null,
    });
  }

  #tellByName({ handle }: Block, tier: KvTier): void {
    this.#events.push({
      kind: "stored",
      engineHashes: BigUint64Array.of(handle),
      parent: null,
      tokenIds: new Uint32Array(0),
      blockTokens: 0,
      tier,
      group: 0,
      fullAttention: true,
      loraName: null,
      salt: null,
      blockKeys: null,
    });
  }

  /** The prompt's blocks, made where they are not there. */
  #chainOf(prompt: ModelPrompt): Block[] {
    const hashes = ownHashes(prompt, this.options);
    const { blockTokens } = this.options;
    const each = blockTokens / this.options.ownBlockTokens;
    let parent: Block | null = null;
    return this.#handles(prompt).map((handle, at) => {
      const known = this.#blocks.get(handle);
      const block: Block = known ?? {
        handle,
        parent,
        tokens: prompt.tokens.slice(at * blockTokens, (at + 1) * blockTokens),
        adapter: prompt.adapter,
        salt: prompt.salt,
        key: prompt.keys[at] ?? null,
        at,
        ownHashes: hashes.slice(at * each, (at + 1) * each),
        gpuCopies: 0,
        onHost: false,
        onDisk: false,
        used: 0,
      };
      this.#blocks.set(handle, block);
      parent = block;
      return block;
    });
  }

  #handles({ tokens, adapter, salt, keys }: ModelPrompt): bigint[] {
    const { blockTokens } = this.options;
    const handles: bigint[] = [];
    let state = mix(mix(this.#hashSeed, textHash(adapter ?? "-")), textHash(salt ?? "-"));
    for (let at = 0; (at + 1) * blockTokens <= tokens.length; at++) {
      state = mix(state, textHash(keys[at] ?? ""));
      for (let token = at * blockTokens; token < (at + 1) * blockTokens; token++) state = mix(state, tokens[token]!);
      handles.push((BigInt(mix(state, 0x5bd1e995) >>> 0) << 32n) | BigInt(state >>> 0));
    }
    return handles;
  }

  #chance(share: number): boolean {
    return this.#random.next() < share;
  }
}

/** As the router hashes it. */
export function ownHashes(
  { tokens, adapter, salt, keys }: ModelPrompt,
  { blockTokens, ownBlockTokens }: Pick<ModelEngineOptions, "blockTokens" | "ownBlockTokens">,
): BigUint64Array {
  const blocks = Math.floor(tokens.length / blockTokens);
  const each = blockTokens / ownBlockTokens;
  const hashes = new BigUint64Array(blocks * each);
  let before = chainRoot(adapter, salt, ownBlockTokens);
  for (let at = 0; at < blocks; at++) {
    const key = keys[at] ?? null;
    if (key !== null) before = keyedParent(before, key);
    const block = Uint32Array.from(tokens.slice(at * blockTokens, (at + 1) * blockTokens));
    hashTokenBlocks(before, block, ownBlockTokens, hashes, at * each);
    before = hashes[(at + 1) * each - 1]!;
  }
  return hashes;
}

function isOn(block: Block, tier: KvTier): boolean {
  if (tier === "gpu") return block.gpuCopies > 0;
  return tier === "host" ? block.onHost : block.onDisk;
}

function mix(state: number, value: number): number {
  const mixed = Math.imul(state ^ value, 0x9e3779b1) + 0x7f4a7c15;
  return (mixed ^ (mixed >>> 15)) | 0;
}

function textHash(text: string): number {
  let hash = text.length + 1;
  for (let at = 0; at < text.length; at++) hash = mix(hash, text.charCodeAt(at));
  return hash;
}
