import type { KvEvent } from "../kvEvent.ts";
import { MalformedMessage, type MsgpackReader } from "./msgpackReader.ts";
import { NameTable } from "./nameTable.ts";
import { HashSlab, TokenSlab } from "./slabs.ts";
import { noFields, toStored, type StoredFields } from "./storedBlocks.ts";
import { TIER_NAMES, tierOf } from "./tiers.ts";

/** An event, or one of a type that says nothing about blocks here. */
export type DecodedEvent = KvEvent | "unknown";

const HASHES = new HashSlab();
const TOKENS = new TokenSlab();
const PARENT = new BigUint64Array(1);
const PARENT_WORDS = new Uint32Array(PARENT.buffer);

type Tag = "stored" | "removed" | "cleared";
type Read = (reader: MsgpackReader, fields: StoredFields) => void;

const TAGS = new NameTable<Tag>({ BlockStored: "stored", BlockRemoved: "removed", AllBlocksCleared: "cleared" });
const TYPE = new NameTable<true>({ type: true });
const FULL_ATTENTION = new NameTable<true>({ full_attention: true, mla_attention: true, sink_full_attention: true });
const REMOTE = new NameTable<true>({ REMOTE: true });

const FIELDS = {
  block_hashes: readHashes,
  parent_block_hash: (reader, fields) => {
    if (reader.nil()) return;
    reader.hash(PARENT_WORDS, 0);
    fields.parent = PARENT[0] ?? null;
  },
  token_ids: readTokenIds,
  block_size: (reader, fields) => {
    if (!reader.nil()) fields.blockTokens = readNatural(reader);
  },
  lora_id: (reader, fields) => {
    if (!reader.nil()) fields.loraId = reader.isString() ? reader.string() : String(reader.number());
  },
  medium: (reader, fields) => {
    if (reader.nil()) return;
    const start = reader.at;
    const tier = reader.name(TIER_NAMES);
    if (tier === undefined) reader.at = start;
    fields.tier = tier ?? tierOf(reader.string());
  },
  lora_name: readNameOrMore,
  extra_keys: (reader, fields) => {
    if (!reader.nil()) fields.extraKeys = readKeyLists(reader);
  },
  group_idx: (reader, fields) => {
    if (!reader.nil()) fields.group = readNatural(reader);
  },
  kv_cache_spec_kind: (reader, fields) => {
    if (!reader.nil()) fields.fullAttention = reader.name(FULL_ATTENTION) ?? false;
  },
  kv_cache_spec_sliding_window: (reader, fields) => {
    if (!reader.nil() && readNatural(reader) > 0) fields.fullAttention ??= false;
  },
  cache_salt: (reader, fields) => {
    if (!reader.nil()) fields.salt = reader.string();
  },
  locality: (reader, fields) => {
    if (!reader.nil() && reader.name(REMOTE) === true) fields.tier = "remote";
  },
} as const satisfies Record<string, Read>;

const KEYS = new NameTable<Read>(FIELDS);

/** What stands where in an event that is an array; vLLM up to 0.23, SGLang up to 0.5.20. */
const STORED_POSITIONS: readonly Read[] = [
  FIELDS.block_hashes,
  FIELDS.parent_block_hash,
  FIELDS.token_ids,
  FIELDS.block_size,
  FIELDS.lora_id,
  FIELDS.medium,
  FIELDS.lora_name,
  FIELDS.extra_keys,
  FIELDS.group_idx,
  FIELDS.kv_cache_spec_kind,
  FIELDS.kv_cache_spec_sliding_window,
];
const REMOVED_POSITIONS: readonly Read[] = [FIELDS.block_hashes, FIELDS.medium, FIELDS.group_idx];

/** Reads one event, array or map. Throws MalformedMessage; the reader then stands anywhere within it. */
export function decodeEvent(reader: MsgpackReader): DecodedEvent {
  const fields = noFields();
  const tag = reader.isMap() ? readMap(reader, fields) : readArray(reader, fields);
  if (tag === undefined) return "unknown";
  if (tag === "cleared") return { kind: "cleared" };
  const { engineHashes, tier, group } = fields;
  if (engineHashes === null) throw new MalformedMessage("no block_hashes");
  return tag === "stored" ? toStored(fields, engineHashes) : { kind: "removed", engineHashes, tier, group };
}

function readArray(reader: MsgpackReader, fields: StoredFields): Tag | undefined {
  let left = reader.array();
  if (left === 0) throw new MalformedMessage("no type");
  left--;
  const tag = reader.name(TAGS);
  const positions = tag === "stored" ? STORED_POSITIONS : tag === "removed" ? REMOVED_POSITIONS : [];
  for (const read of positions) {
    if (left === 0) break;
    left--;
    read(reader, fields);
  }
  for (; left > 0; left--) reader.skip();
  return tag;
}

function readMap(reader: MsgpackReader, fields: StoredFields): Tag | undefined {
  const start = reader.at;
  const members = reader.map();
  const first = reader.at;
  // The type comes first wherever it was seen; if not, it is sought, as it says which fields are worth reading.
  let tag: Tag | undefined;
  let atType = -1;
  for (let member = 0; member < members; member++) {
    if (reader.name(TYPE) === true) {
      tag = reader.name(TAGS);
      atType = member;
      break;
    }
    reader.skip();
  }
  if (atType === -1) throw new MalformedMessage("no type");
  if (tag === undefined || tag === "cleared") {
    reader.at = start;
    reader.skip();
    return tag;
  }
  if (atType > 0) reader.at = first;
  for (let member = atType > 0 ? 0 : 1; member < members; member++) {
    const read = reader.name(KEYS);
    if (read === undefined) reader.skip();
    else read(reader, fields);
  }
  return tag;
}

function readHashes(reader: MsgpackReader, fields: StoredFields): void {
  const count = reader.array();
  const hashes = HASHES.cut(count);
  const { words, wordsAt } = HASHES;
  for (let index = 0; index < count; index++) reader.hash(words, wordsAt + 2 * index);
  fields.engineHashes = hashes;
}

/** Ids as numbers; of a bigram key (EAGLE) the first; of text (TensorRT-LLM) its number, else 2^32 - 1 and the text. */
function readTokenIds(reader: MsgpackReader, fields: StoredFields): void {
  fields.tokenIds = reader.tokenIds(TOKENS, (index) => {
    let value = reader.any();
    if (Array.isArray(value)) value = value[0];
    const id = typeof value === "string" && /^\d{1,10}$/.test(value) ? Number(value) : value;
    if (typeof id === "number" && Number.isInteger(id) && id >= 0 && id < 0xffff_ffff) return id;
    if (typeof value !== "string" && typeof value !== "number") throw new MalformedMessage("not a token id");
    fields.oddTokens ??= new Map();
    fields.oddTokens.set(index, String(value));
    return 0xffff_ffff;
  });
}

/** vLLM's adapter name; SGLang 0.5.18 to 0.5.20 has a map with more fields in its place. */
function readNameOrMore(reader: MsgpackReader, fields: StoredFields): void {
  if (reader.nil()) return;
  if (!reader.isMap()) {
    fields.loraName = reader.string();
    return;
  }
  for (let left = reader.map(); left > 0; left--) {
    const read = reader.name(KEYS);
    if (read === undefined) reader.skip();
    else read(reader, fields);
  }
}

/** Null where all are, which is the usual. */
function readKeyLists(reader: MsgpackReader): readonly unknown[] | null {
  const count = reader.array();
  let block = 0;
  while (block < count && reader.nil()) block++;
  if (block === count) return null;
  const lists: unknown[] = Array.from({ length: block }, () => null);
  for (; block < count; block++) lists.push(reader.any());
  return lists;
}

function readNatural(reader: MsgpackReader): number {
  const value = reader.number();
  if (!Number.isInteger(value) || value < 0) throw new MalformedMessage("not a natural number");
  return value;
}
