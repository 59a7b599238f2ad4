import type { KvEvent, KvEventBatch } from "../kvEvent.ts";
import { decodeEvent, type DecodedEvent } from "./eventDecoder.ts";
import { MalformedMessage, MsgpackReader } from "./msgpackReader.ts";
import { NameTable } from "./nameTable.ts";

type BatchKey = "ts" | "events";

const BATCH_KEYS = new NameTable<BatchKey>({ ts: "ts", events: "events" });

/**
 * Decodes the payload of one frame of vLLM, SGLang or TensorRT-LLM: `[time, events, rank]`, or a map with these under
 * `ts` and `events`. Never throws; what cannot be read is counted, and an event that cannot costs no other.
 */
export function decodeKvMessage(payload: Uint8Array, rank: number, seq: number): KvEventBatch {
  const reader = new MsgpackReader(payload);
  const events: KvEvent[] = [];
  let publishedMs = 0;
  let unreadableEvents = 0;
  try {
    const isMap = reader.isMap();
    const members = isMap ? reader.map() : reader.array();
    for (let member = 0; member < members; member++) {
      const key = isMap ? reader.name(BATCH_KEYS) : member === 0 ? "ts" : member === 1 ? "events" : undefined;
      if (key === "ts") publishedMs = reader.number() * 1000;
      else if (key === "events") unreadableEvents += readEvents(reader, events);
      else reader.skip();
    }
  } catch (caught) {
    if (!(caught instanceof MalformedMessage)) throw caught;
    unreadableEvents++;
  }
  return { rank, seq, publishedMs, events, unreadableEvents };
}

/** The number of events that could not be read. Throws where not even the end of one can be found. */
function readEvents(reader: MsgpackReader, events: KvEvent[]): number {
  let unreadable = 0;
  for (let left = reader.array(); left > 0; left--) {
    const start = reader.at;
    let event: DecodedEvent;
    try {
      event = decodeEvent(reader);
    } catch (caught) {
      if (!(caught instanceof MalformedMessage)) throw caught;
      unreadable++;
      reader.at = start;
      reader.skip();
      continue;
    }
    if (event !== "unknown") events.push(event);
  }
  return unreadable;
}

/** When the batch was published, without reading its events; 0 if that cannot be read. */
export function readPublishedMs(payload: Uint8Array): number {
  const reader = new MsgpackReader(payload);
  try {
    const isMap = reader.isMap();
    for (let left = isMap ? reader.map() : reader.array(); left > 0; left--) {
      if (!isMap || reader.name(BATCH_KEYS) === "ts") return reader.number() * 1000;
      reader.skip();
    }
  } catch (caught) {
    if (!(caught instanceof MalformedMessage)) throw caught;
  }
  return 0;
}
