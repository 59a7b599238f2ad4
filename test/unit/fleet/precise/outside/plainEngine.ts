import type { Random } from "#src/determinism/random.ts";
import { msgpack } from "../../../engines/events/wireEvents.ts";

export interface PlainPrompt {
  readonly tokens: readonly number[];
  readonly adapter: string | null;
  readonly salt: string | null;
}

/** How an engine writes its events. */
export interface Wire {
  readonly form: "array" | "map";
  readonly hashes: "unsigned" | "signed" | "bytes";
}

export interface PlainOptions {
  readonly blockTokens: number;
  readonly gpuBlocks: number;
  /** Blocks that also go to host memory, and from there to disk. */
  readonly offloads: boolean;
  /** Tells of a second cache group, with the same hashes. */
  readonly hasWindowGroup: boolean;
  /** Writes events now and then that cannot be read, or mean nothing. */
  readonly writesGarbage: boolean;
  readonly wire: Wire;
}

export const TIERS = ["gpu", "host", "disk"] as const;
export type PlainTier = (typeof TIERS)[number];
const MEDIUM = { gpu: "GPU", host: "CPU", disk: "STORAGE" } as const;

interface Held {
  readonly handle: bigint;
  readonly prompt: PlainPrompt;
  readonly at: number;
  readonly copies: Record<PlainTier, number>;
}

/** What a rank holds, by block: the tiers that have it. A block's name is all that leads up to it. */
export type Truth = ReadonlyMap<string, ReadonlySet<PlainTier>>;

export interface PlainBatch {
  readonly seq: number;
  readonly payload: Buffer;
  /** What is held once it was published. */
  readonly truth: Truth;
}

let processes = 0;

/**
 * One rank of an engine, which knows its blocks by everything that leads up to them and hashes nothing. What its batches
 * say on the wire and what is true after each is kept side by side. `publishedMs` of a batch tells the process.
 */
export class PlainEngine {
  readonly options: PlainOptions;
  readonly #random: Random;
  readonly #held = new Map<string, Held>();
  #events: unknown[] = [];
  process = ++processes;
  log: PlainBatch[] = [];

  constructor(options: PlainOptions, random: Random) {
    this.options = options;
    this.#random = random;
  }

  restart(): void {
    this.#held.clear();
    this.#events = [];
    this.log = [];
    this.process = ++processes;
  }

  clear(): void {
    this.#held.clear();
    this.#events.push(this.#event("AllBlocksCleared", []));
  }

  run(prompt: PlainPrompt): void {
    const { blockTokens, gpuBlocks } = this.options;
    const blocks = Math.min(Math.floor(prompt.tokens.length / blockTokens), Math.floor(gpuBlocks / 2));
    const chain = Array.from({ length: blocks }, (_, at) => this.#block(prompt, at));
    let from = 0;
    if (this.#chance(0.85)) while (from < blocks && chain[from]!.copies.gpu > 0) from++;
    while (from < blocks) {
      const end = Math.min(blocks, from + 1 + this.#random.below(4));
      for (let at = from; at < end; at++) {
        this.#makeRoom(chain);
        chain[at]!.copies.gpu++;
      }
      this.#stored(chain.slice(from, end), "gpu", false);
      from = end;
    }
    this.#noise();
  }

  /** Takes a copy of some block from GPU memory, or from a slower tier. */
  evict(): void {
    const tier = TIERS[this.#chance(0.7) ? 0 : 1 + this.#random.below(2)]!;
    const some = [...this.#held.values()].filter(({ copies }) => copies[tier] > 0);
    if (some.length > 0) this.#takeFrom(some[this.#random.below(some.length)]!, tier);
  }

  publish(): PlainBatch | null {
    if (this.#events.length === 0) return null;
    for (const [name, { copies }] of this.#held)
      if (copies.gpu + copies.host + copies.disk === 0) this.#held.delete(name);
    const seq = this.log.length;
    const truth = new Map<string, ReadonlySet<PlainTier>>();
    for (const [name, { copies }] of this.#held) truth.set(name, new Set(TIERS.filter((tier) => copies[tier] > 0)));
    const payload = msgpack([this.process * 1000 + seq / 1000, this.#events, 0]);
    this.#events = [];
    const batch = { seq, payload, truth };
    this.log.push(batch);
    return batch;
  }

  #makeRoom(keep: readonly Held[]): void {
    for (;;) {
      const onGpu = [...this.#held.values()].filter(({ copies }) => copies.gpu > 0);
      let used = 0;
      for (const { copies } of onGpu) used += copies.gpu;
      if (used < this.options.gpuBlocks) return;
      const others = onGpu.filter((block) => !keep.includes(block));
      const from = others.length > 0 ? others : onGpu.filter(({ copies }) => copies.gpu > 1);
      this.#takeFrom(from[this.#random.below(from.length)]!, "gpu");
    }
  }

  #takeFrom(block: Held, tier: PlainTier): void {
    const next = tier === "gpu" ? "host" : "disk";
    if (this.options.offloads && tier !== "disk" && block.copies[next] === 0 && this.#chance(0.6)) {
      block.copies[next] = 1;
      this.#stored([block], next, this.#chance(0.5));
    }
    block.copies[tier]--;
    this.#events.push(this.#event("BlockRemoved", [[this.#hash(block.handle)], MEDIUM[tier], 0]));
  }

  #block(prompt: PlainPrompt, at: number): Held {
    const name = blockName(prompt, (at + 1) * this.options.blockTokens);
    let block = this.#held.get(name);
    if (block === undefined) {
      const handle = (BigInt(this.#random.below(2 ** 32)) << 32n) | BigInt(this.#random.below(2 ** 32));
      block = { handle, prompt, at, copies: { gpu: 0, host: 0, disk: 0 } };
      this.#held.set(name, block);
    }
    return block;
  }

  #stored(blocks: readonly Held[], tier: PlainTier, byName: boolean): void {
    const { blockTokens, hasWindowGroup } = this.options;
    const { at } = blocks[0]!;
    const { prompt } = blocks.at(-1)!;
    const hashes = blocks.map(({ handle }) => this.#hash(handle));
    const before = at === 0 ? undefined : this.#held.get(blockName(prompt, at * blockTokens));
    // What is not held any more still has a name to its children, which nobody can know.
    const parent = at === 0 ? null : this.#hash(before?.handle ?? 77n);
    const tokens = prompt.tokens.slice(at * blockTokens, (at + blocks.length) * blockTokens);
    const { adapter, salt } = prompt;
    const keys = salt === null ? null : blocks.map((block) => (block.at === 0 ? [salt] : null));
    const lora = adapter === null ? null : 1;
    const more = [lora, MEDIUM[tier], adapter, keys];
    if (hasWindowGroup && this.#chance(0.5))
      this.#events.push(
        this.#event("BlockStored", [hashes, parent, tokens, blockTokens, ...more, 1, "sliding_window", 128]),
      );
    this.#events.push(
      byName
        ? this.#event("BlockStored", [hashes, null, [], 0, null, MEDIUM[tier], null, null, 0, "full_attention"])
        : this.#event("BlockStored", [hashes, parent, tokens, blockTokens, ...more, 0, "full_attention"]),
    );
  }

  #noise(): void {
    const { hasWindowGroup, writesGarbage } = this.options;
    const [some] = this.#held.values();
    if (hasWindowGroup && some !== undefined && this.#chance(0.3))
      this.#events.push(this.#event("BlockRemoved", [[this.#hash(some.handle)], "GPU", 1]));
    if (this.#chance(0.1)) this.#events.push(this.#event("SomethingNew", [1, "x"]));
    if (writesGarbage && this.#chance(0.02)) this.#events.push(["BlockStored", "no hashes"]);
  }

  #event(type: string, fields: readonly unknown[]): unknown {
    if (this.options.wire.form === "array") return [type, ...fields];
    const names =
      type === "BlockStored"
        ? "block_hashes parent_block_hash token_ids block_size lora_id medium lora_name extra_keys group_idx kv_cache_spec_kind kv_cache_spec_sliding_window"
        : "block_hashes medium group_idx";
    return Object.fromEntries([["type", type], ...fields.map((field, at) => [names.split(" ")[at]!, field])]);
  }

  #hash(handle: bigint): unknown {
    const { hashes } = this.options.wire;
    if (hashes === "unsigned") return handle;
    if (hashes === "signed") return BigInt.asIntN(64, handle);
    const bytes = Buffer.alloc(32, 7);
    bytes.writeBigUInt64BE(handle, 24);
    return bytes;
  }

  #chance(share: number): boolean {
    return this.#random.next() < share;
  }
}

export function blockName({ tokens, adapter, salt }: PlainPrompt, length: number): string {
  return `${adapter} ${salt} ${tokens.slice(0, length).join()}`;
}

/** Leading tokens of the prompt that these tiers hold together. */
export function leadingTokens(
  truth: Truth,
  prompt: PlainPrompt,
  blockTokens: number,
  tiers: readonly PlainTier[],
): number {
  let length = 0;
  while (length + blockTokens <= prompt.tokens.length) {
    const on = truth.get(blockName(prompt, length + blockTokens));
    if (on === undefined || !tiers.some((tier) => on.has(tier))) break;
    length += blockTokens;
  }
  return length;
}
