import { createHash } from "node:crypto";
import type { CacheEvent, CacheTier, RemovedEvent, StoredEvent } from "./cacheEvent.ts";
import { MsgpackWriter } from "./msgpackWriter.ts";

/** Whose events the stream looks like. All say the same; only the bytes differ. */
export type EventFormName = "vllm" | "vllm-bytes" | "vllm-arrays" | "vllm-0.8" | "sglang" | "sglang-arrays";

/** How an engine's version writes its events. */
export interface EventForm {
  readonly events: "maps" | "arrays";
  readonly hashes: "unsigned" | "signed" | "digests";
  readonly fields: "vllm" | "sglang" | "oldest";
  /** Repeated batches carry their topic (vLLM from 0.26 on). */
  readonly replayTopic: boolean;
  /** The first batch of a process says that its cache is empty. */
  readonly clearsAtStart: boolean;
}

const vllm: EventForm = {
  events: "maps",
  hashes: "unsigned",
  fields: "vllm",
  replayTopic: true,
  clearsAtStart: false,
};
const sglang: EventForm = {
  events: "maps",
  hashes: "signed",
  fields: "sglang",
  replayTopic: false,
  clearsAtStart: true,
};

export const EVENT_FORMS: Readonly<Record<EventFormName, EventForm>> = {
  vllm,
  /** With `VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=0`. */
  "vllm-bytes": { ...vllm, hashes: "digests" },
  /** Up to 0.23. */
  "vllm-arrays": { ...vllm, events: "arrays", replayTopic: false },
  "vllm-0.8": { ...vllm, events: "arrays", fields: "oldest", replayTopic: false },
  sglang,
  /** Up to 0.5.20. */
  "sglang-arrays": { ...sglang, events: "arrays" },
};

export interface EventBatch {
  readonly events: readonly CacheEvent[];
  /** Since 1970. */
  readonly atSeconds: number;
  readonly rank: number;
}

const WRITER = new MsgpackWriter();

/** The payload of one message. */
export function encodeBatch(form: EventForm, { events, atSeconds, rank }: EventBatch): Buffer {
  const hasRank = form.fields !== "oldest";
  WRITER.array(hasRank ? 3 : 2).float(atSeconds);
  const written = events.flatMap((event) => fieldsOf(form, event));
  WRITER.array(written.length);
  for (const fields of written) writeEvent(form, fields);
  if (hasRank) WRITER.uint(rank);
  return WRITER.take();
}

type Write = (writer: MsgpackWriter) => unknown;
type Fields = readonly [name: string, write: Write][];

const nil: Write = (writer) => writer.nil();
const text =
  (value: string | null): Write =>
  (writer) =>
    value === null ? writer.nil() : writer.string(value);
const uint =
  (value: number | null): Write =>
  (writer) =>
    value === null ? writer.nil() : writer.uint(value);

function writeEvent({ events }: EventForm, fields: Fields): void {
  if (events === "maps") WRITER.map(fields.length);
  else WRITER.array(fields.length);
  for (const [name, write] of fields) {
    if (events === "maps") WRITER.string(name);
    write(WRITER);
  }
}

/** One event can be several on the wire: an offloaded block is an event of its own. */
function fieldsOf(form: EventForm, event: CacheEvent): Fields[] {
  if (event.kind === "cleared") return [[["type", text("AllBlocksCleared")]]];
  if (event.kind === "removed") return [removedFields(form, event)];
  if (event.tier === "host" && form.fields === "vllm") {
    return Array.from(event.hashes, (hash) => placeholderFields(form, hash));
  }
  return [storedFields(form, event)];
}

function removedFields(form: EventForm, { hash, tier }: RemovedEvent): Fields {
  const fields: Fields = [
    ["type", text("BlockRemoved")],
    ["block_hashes", hashList(form, [hash])],
    ["medium", text(mediumOf(form, tier))],
    ["group_idx", uint(0)],
  ];
  return fields.slice(0, { vllm: 4, sglang: 3, oldest: 2 }[form.fields]);
}

function storedFields(form: EventForm, event: StoredEvent): Fields {
  const { hashes, parent, tokens, blockTokens, adapter, salt, tier } = event;
  const common: Fields = [
    ["type", text("BlockStored")],
    ["block_hashes", hashList(form, hashes)],
    ["parent_block_hash", parent === null ? nil : (writer) => writeHash(writer, form, parent)],
    ["token_ids", (writer) => tokens.reduce((to, token) => to.uint(token), writer.array(tokens.length))],
    ["block_size", uint(blockTokens)],
    ["lora_id", uint(adapter?.id ?? null)],
  ];
  if (form.fields === "oldest") return common;
  const medium: Fields[number] = ["medium", text(mediumOf(form, tier))];
  if (form.fields === "sglang") {
    if (salt === null) return [...common, medium];
    // In an array the further fields stand in a map of their own (0.5.18 to 0.5.20).
    const write: Write =
      form.events === "maps" ? text(salt) : (writer) => writer.map(1).string("cache_salt").string(salt);
    return [...common, medium, ["cache_salt", write]];
  }
  return [
    ...common,
    medium,
    ["lora_name", text(adapter?.name ?? null)],
    ["extra_keys", (writer) => writeExtraKeys(writer, event)],
    ["group_idx", uint(0)],
    ["kv_cache_spec_kind", text("full_attention")],
  ];
}

/** vLLM's offloading names blocks by their hash only, and leaves out what has its default value. */
function placeholderFields(form: EventForm, hash: bigint): Fields {
  const fields: Fields = [
    ["type", text("BlockStored")],
    ["block_hashes", hashList(form, [hash])],
    ["parent_block_hash", nil],
    ["token_ids", (writer) => writer.array(0)],
    ["block_size", uint(0)],
    ["lora_id", nil],
    ["medium", text(mediumOf(form, "host"))],
    ["lora_name", nil],
  ];
  const rest: Fields = form.events === "maps" ? [] : [["extra_keys", nil]];
  return [...fields, ...rest, ["group_idx", uint(0)]];
}

/** Per block: the adapter's name, and before a prompt's first block its salt. */
function writeExtraKeys(writer: MsgpackWriter, { hashes, parent, adapter, salt }: StoredEvent): void {
  writer.array(hashes.length);
  for (let block = 0; block < hashes.length; block++) {
    const keys = adapter === null ? [] : [adapter.name];
    if (salt !== null && parent === null && block === 0) keys.push(salt);
    if (keys.length === 0) writer.nil();
    else keys.reduce((to, key) => to.string(key), writer.array(keys.length));
  }
}

function mediumOf(form: EventForm, tier: CacheTier): string {
  if (tier === "gpu") return "GPU";
  return form.fields === "sglang" ? "CPU_PINNED" : "CPU";
}

function hashList(form: EventForm, hashes: Iterable<bigint> & { readonly length: number }): Write {
  return (writer) => {
    writer.array(hashes.length);
    for (const hash of hashes) writeHash(writer, form, hash);
  };
}

function writeHash(writer: MsgpackWriter, { hashes }: EventForm, hash: bigint): void {
  if (hashes === "unsigned") writer.int(hash);
  else if (hashes === "signed") writer.int(BigInt.asIntN(64, hash));
  else writer.bytes(digestOf(hash));
}

/** A digest of 32 bytes that ends with the hash, as the integers that vLLM publishes are the ends of digests. */
function digestOf(hash: bigint): Buffer {
  const end = Buffer.alloc(8);
  end.writeBigUInt64BE(hash);
  return Buffer.concat([createHash("sha256").update(end).digest().subarray(0, 24), end]);
}
