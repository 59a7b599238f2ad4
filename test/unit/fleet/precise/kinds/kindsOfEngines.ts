import { Packr } from "msgpackr";
import type { Random } from "#src/determinism/random.ts";

const packr = new Packr({ useRecords: false, variableMapSize: true });

export interface Asked {
  readonly tokens: readonly number[];
  readonly adapter: string | null;
  readonly salt: string | null;
}

type Tier = "gpu" | "host" | "disk";
const TIERS: readonly Tier[] = ["gpu", "host", "disk"];

/** What one process of an engine is and how it writes; the next one at the same address may be another kind. */
export interface Kind {
  readonly writes: "vllm array" | "vllm map" | "sglang array" | "sglang array and map" | "sglang map";
  readonly hashes: "unsigned" | "signed" | "bytes";
  readonly blockTokens: number;
  /** By cache group; one of them is of full attention, `null` where no groups are told. */
  readonly groups: readonly string[] | null;
  /** EAGLE: keys are pairs of neighbouring tokens. */
  readonly bigrams: boolean;
  /** Blocks may be told to be on the host only after they have left GPU memory. */
  readonly offloadsLate: boolean;
}

interface Block {
  readonly handle: bigint;
  readonly asked: Asked;
  readonly at: number;
  readonly copies: Record<Tier, number>;
}

/** One rank's cache, by what leads up to each block, and what it publishes. */
export class RankOfKind {
  readonly kind: Kind;
  readonly #random: Random;
  readonly #blocks = new Map<string, Block>();
  #late: Block[] = [];
  #events: unknown[] = [];
  #seq = 0;

  constructor(kind: Kind, random: Random) {
    this.kind = kind;
    this.#random = random;
    // The first block that is told by its name is told in time: before that nobody need remember what has left.
    if (!kind.offloadsLate) return;
    this.run({ tokens: Array.from({ length: kind.blockTokens }, () => 1), adapter: null, salt: null });
    for (const block of this.#blocks.values()) this.#offload(block, "host");
  }

  run(asked: Asked): void {
    const chain = Array.from({ length: Math.floor(asked.tokens.length / this.kind.blockTokens) }, (_, at) =>
      this.#block(asked, at),
    );
    // Two requests that begin together compute the same blocks: both are stored.
    let from = 0;
    if (this.#random.below(8) > 0) while (from < chain.length && chain[from]!.copies.gpu > 0) from++;
    for (let end = from; from < chain.length; from = end) {
      end = Math.min(chain.length, from + 1 + this.#random.below(5));
      for (const block of chain.slice(from, end)) block.copies.gpu++;
      this.#store(chain.slice(from, end), "gpu");
    }
  }

  /** Something leaves a tier, perhaps for the next one. */
  evict(): void {
    const held = [...this.#blocks.values()].filter(({ copies }) => TIERS.some((tier) => copies[tier] > 0));
    if (held.length === 0) return;
    const block = held[this.#random.below(held.length)]!;
    const tiers = TIERS.filter((tier) => block.copies[tier] > 0);
    const tier = tiers[this.#random.below(tiers.length)]!;
    const next = tier === "gpu" ? "host" : "disk";
    const goesOn = tier !== "disk" && block.copies[next] === 0 && this.#random.below(2) === 0;
    const isLate = goesOn && this.kind.offloadsLate && this.#random.below(2) === 0;
    if (goesOn && !isLate) this.#offload(block, next);
    block.copies[tier]--;
    this.#remove(block, tier);
    if (!isLate) return;
    if (this.#random.below(2) === 0) this.#offload(block, next);
    else if (next === "host") this.#late.push(block);
  }

  clear(): void {
    this.#blocks.clear();
    this.#late = [];
    this.#events.push(this.#isMap ? { type: "AllBlocksCleared" } : ["AllBlocksCleared"]);
  }

  /** The step's batch; null: it has none. */
  publish(): { seq: number; payload: Buffer } | null {
    for (const block of this.#late.splice(0)) if (block.copies.host === 0) this.#offload(block, "host");
    if (this.#events.length === 0) return null;
    const payload = packr.pack([1_700_000_000 + this.#seq, this.#events, 0]);
    this.#events = [];
    return { seq: this.#seq++, payload };
  }

  /** Leading tokens of a prompt on the tiers up to each one. */
  leading(asked: Asked): number[] {
    const { blockTokens } = this.kind;
    return TIERS.map((_, last) => {
      let at = 0;
      for (; (at + 1) * blockTokens <= asked.tokens.length; at++) {
        const block = this.#blocks.get(nameOf(asked, (at + 1) * blockTokens));
        if (block === undefined || TIERS.slice(0, last + 1).every((tier) => block.copies[tier] === 0)) break;
      }
      return at * blockTokens;
    });
  }

  get #isMap(): boolean {
    return this.kind.writes.endsWith("map") && this.kind.writes !== "sglang array and map";
  }

  #block(asked: Asked, at: number): Block {
    const name = nameOf(asked, (at + 1) * this.kind.blockTokens);
    let block = this.#blocks.get(name);
    if (block === undefined) {
      const handle = BigInt.asUintN(64, BigInt(this.#random.below(2 ** 48)) * 0x9e3779b97f4a7c15n);
      block = { handle, asked, at, copies: { gpu: 0, host: 0, disk: 0 } };
      this.#blocks.set(name, block);
    }
    return block;
  }

  #offload(block: Block, tier: Tier): void {
    block.copies[tier]++;
    const { writes } = this.kind;
    if (writes.startsWith("sglang")) this.#store([block], tier);
    else this.#write([this.#hash(block)], null, [], 0, tier, block, this.#fullGroup);
  }

  #store(blocks: readonly Block[], tier: Tier): void {
    const { blockTokens, bigrams, groups } = this.kind;
    const [first] = blocks;
    const { asked } = blocks.at(-1)!;
    const from = first!.at * blockTokens;
    const ids = asked.tokens.slice(from, from + blocks.length * blockTokens);
    const tokens = bigrams ? ids.map((id, at) => [id, asked.tokens[from + at + 1] ?? 0]) : ids;
    const parent = first!.at === 0 ? null : this.#hash(this.#block(asked, first!.at - 1));
    const hashes = blocks.map((block) => this.#hash(block));
    for (const [group, spec] of (groups ?? []).entries()) {
      if (group === this.#fullGroup || this.#random.below(2) === 0) continue;
      // A window may begin anywhere, and then its blocks have parents that nobody has told of.
      const some = spec === "mamba" ? [hashes.at(-1)] : hashes;
      this.#write(
        some,
        spec === "mamba" ? 5n : parent,
        tokens.slice(0, some.length * blockTokens),
        blockTokens,
        tier,
        first!,
        group,
      );
      if (this.#random.below(2) === 0) this.#write(some.slice(0, 1), undefined, [], 0, tier, first!, group);
    }
    this.#write(hashes, parent, tokens, blockTokens, tier, first!, this.#fullGroup);
  }

  #remove(block: Block, tier: Tier): void {
    const { groups } = this.kind;
    this.#write([this.#hash(block)], undefined, [], 0, tier, block, this.#fullGroup);
    if (groups !== null && this.#random.below(3) === 0) {
      const other = this.#random.below(groups.length);
      if (other !== this.#fullGroup) this.#write([this.#hash(block)], undefined, [], 0, tier, block, other);
    }
  }

  get #fullGroup(): number {
    return this.kind.groups?.indexOf("full_attention") ?? 0;
  }

  /** @param parent undefined: a removal */
  #write(
    block_hashes: readonly unknown[],
    parent: unknown,
    token_ids: readonly unknown[],
    block_size: number,
    tier: Tier,
    { asked, at }: Block,
    group: number,
  ): void {
    const { writes, groups } = this.kind;
    const isVllm = writes.startsWith("vllm");
    const medium = { gpu: "GPU", host: isVllm ? "CPU" : "CPU_PINNED", disk: isVllm ? "STORAGE" : "DISK" }[tier];
    const told = isVllm && groups !== null;
    const { adapter, salt } = asked;
    if (parent === undefined) {
      const fields = told ? { block_hashes, medium, group_idx: group } : { block_hashes, medium };
      this.#events.push(this.#isMap ? { type: "BlockRemoved", ...fields } : ["BlockRemoved", ...Object.values(fields)]);
      return;
    }
    const common = { block_hashes, parent_block_hash: parent, token_ids, block_size };
    if (!isVllm) {
      // SGLang tells an adapter in no form but by its number.
      const fields = { ...common, lora_id: adapter === null ? null : 7, medium };
      const more = salt === null ? {} : { cache_salt: salt };
      if (this.#isMap) this.#events.push({ type: "BlockStored", ...fields, ...more });
      else if (writes === "sglang array") this.#events.push(["BlockStored", ...Object.values(fields)]);
      else this.#events.push(["BlockStored", ...Object.values(fields), { ...more, session_id: "s" }]);
      return;
    }
    const keys = block_hashes.map((_, block) => {
      const list = [...(adapter === null ? [] : [adapter]), ...(salt !== null && at + block === 0 ? [salt] : [])];
      return list.length === 0 ? null : list;
    });
    const fields = {
      ...common,
      lora_id: adapter === null ? null : 7,
      medium,
      lora_name: adapter,
      extra_keys: token_ids.length === 0 ? null : keys,
      ...(told ? { group_idx: group, kv_cache_spec_kind: groups[group] } : {}),
    };
    this.#events.push(this.#isMap ? { type: "BlockStored", ...fields } : ["BlockStored", ...Object.values(fields)]);
  }

  #hash({ handle }: Block): unknown {
    if (this.kind.hashes === "unsigned") return handle;
    if (this.kind.hashes === "signed") return BigInt.asIntN(64, handle);
    const digest = Buffer.alloc(32, 0xab);
    digest.writeBigUInt64BE(handle, 24);
    return digest;
  }
}

function nameOf({ tokens, adapter, salt }: Asked, length: number): string {
  return `${adapter}/${salt}/${tokens.slice(0, length).join()}`;
}
