/** One batch as it lies on the wire. */
export interface BatchFrame {
  readonly seq: number;
  readonly payload: Buffer;
}

/** What a message of a replay says. */
export type ReplayMessage = BatchFrame | "end";

const END_SEQ = 0xffff_ffff_ffff_ffffn;

/** `[topic, seq, payload]`; null if it is something else. */
export function readLiveMessage(frames: readonly Buffer[]): BatchFrame | null {
  const [, seq, payload] = frames;
  return frames.length === 3 ? readBatch(seq, payload) : null;
}

/**
 * `["", seq, payload]`, or with the topic before the number (vLLM from 0.26 on, TensorRT-LLM). The end has the highest
 * number and no payload.
 */
export function readReplayMessage(frames: readonly Buffer[], topic: string): ReplayMessage | null {
  if (frames.length !== 3 && frames.length !== 4) return null;
  const [seq, payload] = frames.slice(-2);
  if (seq?.length === 8 && payload?.length === 0 && seq.readBigUInt64BE() === END_SEQ) return "end";
  const isOther = frames.length === 4 && !frames[1]!.toString().startsWith(topic);
  return isOther ? null : readBatch(seq, payload);
}

function readBatch(seq: Buffer | undefined, payload: Buffer | undefined): BatchFrame | null {
  if (seq?.length !== 8 || payload === undefined) return null;
  const number = Number(seq.readBigUInt64BE());
  return Number.isSafeInteger(number) ? { seq: number, payload } : null;
}
