import { readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "../../../recorded/kv-events-vllm-0.32.0");

function read(file: string): unknown {
  return JSON.parse(readFileSync(join(FOLDER, file), "utf8"));
}

function hex(frames: readonly string[]): Buffer[] {
  return frames.map((frame) => Buffer.from(frame, "hex"));
}

/** Live messages of a real vLLM, with what the client did to cause them. */
export function recordedMessages(): { step: string; frames: Buffer[] }[] {
  const list = read("frames.json") as { step: string; frames: string[] }[];
  return list.map(({ step, frames }) => ({ step, frames: hex(frames) }));
}

/** The messages of `basic.json`, without their times. */
export function basicMessages(): Buffer[][] {
  return (read("basic.json") as [number, ...string[]][]).map(([, ...frames]) => hex(frames));
}

/** The messages of a replay answer; the first frame of each is empty. */
export function recordedReplay(file: "gap-replay.json" | "lora-replay.json"): Buffer[][] {
  return (read(file) as string[][]).map(hex);
}
