import { parseJson } from "../../answers.ts";
import type { KvEvent, KvStored, KvTier } from "../kvEvent.ts";
import { mediaKey } from "../wire/extraKeys.ts";

/** One event as `/kv_cache_events` lists it. */
export interface PulledEvent {
  readonly eventId: number;
  readonly rank: number;
  /** Null: it could not be read. Empty: it says nothing about full blocks. */
  readonly events: readonly KvEvent[] | null;
}

type Json = Readonly<Record<string, unknown>>;

/** Hashes have 64 bits, of which JSON.parse would keep 53: they become strings before. No JSON string can look so. */
const HASH = /"(block_hash|parent_hash)"(\s*:\s*)(-?\d+)/g;
const HASHES = /("block_hashes"\s*:\s*\[)([^\]]*)(\])/g;

/**
 * Reads what TensorRT-LLM's `POST /kv_cache_events` answers. Remembers of each rank which window sizes it saw, the
 * largest being that of full attention, and how many tokens a full block has. Blocks that are not full are passed over:
 * no prompt can be looked up in them.
 *
 * The adapter of a block is not told by this route: with adapters, use the engine's publisher.
 */
export class PulledEvents {
  readonly #ranks = new Map<number, RankFacts>();
  readonly #blockTokens: number | null;

  /** `blockTokens` as the engine tells it elsewhere; null: found out from blocks that have a next one. */
  constructor(blockTokens: number | null) {
    this.#blockTokens = blockTokens;
  }

  /** Null if the answer is no list of events. */
  read(body: string): readonly PulledEvent[] | null {
    const quoted = body
      .replace(HASH, '"$1"$2"$3"')
      .replace(HASHES, (_, before: string, list: string, after: string) => {
        return before + list.replace(/-?\d+/g, '"$&"') + after;
      });
    const list = parseJson(quoted);
    if (!Array.isArray(list)) return null;
    return list.flatMap((entry: unknown) => {
      if (!isObject(entry) || typeof entry["event_id"] !== "number") return [];
      const rank = typeof entry["attention_dp_rank"] === "number" ? entry["attention_dp_rank"] : 0;
      return [{ eventId: entry["event_id"], rank, events: this.#readOne(entry, rank) }];
    });
  }

  /** A new process may have other sizes. */
  forget(rank: number): void {
    this.#ranks.delete(rank);
  }

  #readOne(entry: Json, rank: number): readonly KvEvent[] | null {
    const facts = this.#ranks.get(rank) ?? { windowTokens: 0, blockTokens: this.#blockTokens, passedOver: new Set() };
    this.#ranks.set(rank, facts);
    const window = typeof entry["window_size"] === "number" ? entry["window_size"] : 0;
    facts.windowTokens = Math.max(facts.windowTokens, window);
    try {
      return isObject(entry["data"]) ? readData(entry["data"], window, facts) : null;
    } catch (caught) {
      // BigInt's only complaint: what should be a hash is none.
      if (caught instanceof SyntaxError || caught instanceof TypeError) return null;
      throw caught;
    }
  }
}

interface RankFacts {
  windowTokens: number;
  blockTokens: number | null;
  /** Windows and hashes of blocks that were not full, whose removal is to be passed over too. */
  readonly passedOver: Set<string>;
}

/** There is at most one at the end of each chain in the engine's cache. */
const MAX_PASSED_OVER = 65_536;

/** `tokens_per_block` where nothing else was configured. */
const DEFAULT_BLOCK_TOKENS = 32;

function readData(data: Json, group: number, facts: RankFacts): readonly KvEvent[] | null {
  switch (data["type"]) {
    case "stored":
      return readStored(data, group, facts);
    case "removed":
      return readRemoved(data, group, facts);
    case "updated": {
      const level = data["cache_level"];
      if (!isObject(level)) return [];
      const engineHashes = hashesOf([data["block_hash"]]);
      if (facts.passedOver.has(passedOverKey(group, engineHashes[0]!))) return [];
      return [{ kind: "moved", engineHashes, from: tierOf(level["old_value"]), to: tierOf(level["new_value"]), group }];
    }
    default:
      return [];
  }
}

function readRemoved(data: Json, group: number, { passedOver }: RankFacts): readonly KvEvent[] {
  const engineHashes = hashesOf(data["block_hashes"]).filter((hash) => !passedOver.delete(passedOverKey(group, hash)));
  return engineHashes.length === 0 ? [] : [{ kind: "removed", engineHashes, tier: null, group }];
}

function passOver({ passedOver }: RankFacts, group: number, hash: bigint): void {
  const [oldest] = passedOver;
  if (oldest !== undefined && passedOver.size === MAX_PASSED_OVER) passedOver.delete(oldest);
  passedOver.add(passedOverKey(group, hash));
}

function passedOverKey(group: number, hash: bigint): string {
  return `${group} ${hash}`;
}

/** One event for each run of full blocks on the same level; blocks of one event are a chain. */
function readStored(data: Json, group: number, facts: RankFacts): readonly KvEvent[] | null {
  if (!Array.isArray(data["blocks"])) return null;
  const blocks = (data["blocks"] as readonly unknown[]).filter(isObject);
  const firstTokens = blocks[0]?.["tokens"];
  if (blocks.length > 1 && Array.isArray(firstTokens)) facts.blockTokens ??= firstTokens.length;
  const blockTokens = facts.blockTokens ?? DEFAULT_BLOCK_TOKENS;
  const runs: { parent: bigint | null; blocks: Json[] }[] = [];
  let parent = data["parent_hash"] === null ? null : BigInt.asUintN(64, BigInt(data["parent_hash"] as string));
  let allFull = true;
  for (const block of blocks) {
    const last = runs.at(-1);
    const hash = BigInt.asUintN(64, BigInt(block["block_hash"] as string));
    allFull &&= Array.isArray(block["tokens"]) && block["tokens"].length === blockTokens;
    if (!allFull) {
      passOver(facts, group, hash);
      continue;
    }
    facts.passedOver.delete(passedOverKey(group, hash));
    if (last !== undefined && last.blocks[0]?.["cache_level"] === block["cache_level"]) last.blocks.push(block);
    else runs.push({ parent, blocks: [block] });
    parent = hash;
  }
  const fullAttention = group === facts.windowTokens;
  return runs.map((run) => toStored(run, { group, fullAttention, blockTokens }));
}

function toStored(
  { parent, blocks }: { parent: bigint | null; blocks: readonly Json[] },
  { group, fullAttention, blockTokens }: Pick<KvStored, "group" | "fullAttention" | "blockTokens">,
): KvStored {
  const tokenIds = new Uint32Array(blocks.length * blockTokens);
  const blockKeys = blocks.map((block, at) => readBlock(block, tokenIds.subarray(at * blockTokens)));
  return {
    kind: "stored",
    engineHashes: hashesOf(blocks.map((block) => block["block_hash"])),
    parent,
    tokenIds,
    blockTokens,
    tier: tierOf(blocks[0]?.["cache_level"]),
    group,
    fullAttention,
    loraName: null,
    salt: null,
    blockKeys: blockKeys.every((key) => key === null) ? null : blockKeys,
  };
}

/** Writes the block's tokens, and gives what else its content depends on. */
function readBlock(block: Json, tokenIds: Uint32Array): string | null {
  const keys: string[] = [];
  for (const [at, token] of (block["tokens"] as readonly unknown[]).entries()) {
    const { token_id: id, token_extra_id: extra } = isObject(token) ? token : { token_id: null, token_extra_id: 0 };
    const isId = typeof id === "number" && Number.isInteger(id) && id >= 0 && id < 0xffff_ffff;
    tokenIds[at] = isId ? id : 0xffff_ffff;
    if (!isId) keys.push(mediaKey(id, at));
    if (typeof extra === "number" && extra !== 0) keys.push(mediaKey(`extra ${extra}`, at));
  }
  for (const media of Array.isArray(block["mm_keys"]) ? (block["mm_keys"] as readonly unknown[]) : []) {
    keys.push(isObject(media) ? mediaKey(media["hash"], media["start_offset"]) : mediaKey(media, undefined));
  }
  return keys.length === 0 ? null : keys.join(",");
}

/** Level 0 is GPU memory, 1 the host's. */
function tierOf(level: unknown): KvTier {
  return level === undefined || level === 0 ? "gpu" : level === 1 ? "host" : "remote";
}

function hashesOf(list: unknown): BigUint64Array {
  if (!Array.isArray(list)) throw new TypeError("not a list of hashes");
  return BigUint64Array.from(list as readonly string[], (hash) => BigInt.asUintN(64, BigInt(hash)));
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
