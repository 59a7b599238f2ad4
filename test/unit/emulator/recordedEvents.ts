import { readFileSync } from "node:fs";
import { join } from "node:path";

const RECORDED = join(import.meta.dirname, "../../recorded/vllm-0.32.0-events");

/** One batch as a real engine published it, with what was being asked of the engine. */
export interface RecordedBatch {
  readonly step: string;
  readonly topic: string;
  readonly seq: number;
  readonly payload: Buffer;
}

interface RecordedRun {
  readonly frames: readonly { readonly step: string; readonly frames_hex: readonly [string, string, string] }[];
}

/** The event frames of a recorded run, in order. */
export function recordedBatches(file: string): RecordedBatch[] {
  const run = JSON.parse(readFileSync(join(RECORDED, file), "utf8")) as RecordedRun;
  return run.frames.map(({ step, frames_hex: [topic, seq, payload] }) => ({
    step,
    topic: Buffer.from(topic, "hex").toString(),
    seq: Number(Buffer.from(seq, "hex").readBigUInt64BE()),
    payload: Buffer.from(payload, "hex"),
  }));
}

/** The payloads of a recorded replay, in order. */
export function recordedReplay(file: string): Buffer[] {
  const messages = JSON.parse(readFileSync(join(RECORDED, file), "utf8")) as string[][];
  return messages.flatMap(([, , , payload = ""]) => (payload === "" ? [] : [Buffer.from(payload, "hex")]));
}
