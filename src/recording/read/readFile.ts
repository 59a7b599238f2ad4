import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { crc32 } from "node:zlib";
import { z } from "zod";
import { FRAME_HEAD_BYTES, MAGIC, MAX_FRAME_BYTES, type FileHeader } from "../format/frames.ts";
import type { HashKey } from "../format/hashKey.ts";
import { RecordingError } from "../format/recordingError.ts";
import type { RecordingRecord } from "../format/records.ts";
import { RecordReader } from "./recordReader.ts";

const HeaderShape = z.object({
  run: z.string().min(1).max(64),
  part: z.int().min(0),
  version: z.string().max(64),
  seed: z.int().min(0),
  keyId: z.string().max(64),
  maxReplicas: z.int().min(1).max(1_000_000),
});

/** What a file's end was like. */
export type FileEnd = { readonly kind: "whole" } | { readonly kind: "cut"; readonly atByte: number };

/** Whether a file begins like a recording of any version. */
export function isRecording(path: string): boolean {
  const file = new Bytes(path);
  try {
    return file.read(0, MAGIC.length - 1)?.equals(MAGIC.subarray(0, -1)) ?? false;
  } finally {
    file.close();
  }
}

export function readHeader(path: string): FileHeader {
  const file = new Bytes(path);
  try {
    return header(file).header;
  } finally {
    file.close();
  }
}

/**
 * The records of one file. One that was not finished ends with its last whole frame; the generator's value says where.
 * Throws RecordingError, naming file and place, for anything else that is not as it was written.
 */
export function* readFile(path: string, key: HashKey | null): Generator<RecordingRecord, FileEnd> {
  const file = new Bytes(path);
  try {
    let at = header(file).end;
    const reader = new RecordReader(key);
    while (at < file.size) {
      const payload = frame(file, at);
      if (payload === null) return { kind: "cut", atByte: at };
      try {
        yield* reader.records(payload);
      } catch (cause) {
        if (!(cause instanceof RecordingError)) throw cause;
        throw new RecordingError(`${path}, frame at byte ${at}: ${cause.message}`, { cause });
      }
      at += FRAME_HEAD_BYTES + payload.length;
    }
    return { kind: "whole" };
  } finally {
    file.close();
  }
}

function header(file: Bytes): { header: FileHeader; end: number } {
  const { path } = file;
  const magic = file.read(0, MAGIC.length);
  if (magic === null || !magic.subarray(0, -1).equals(MAGIC.subarray(0, -1)))
    throw new RecordingError(`${path} is no recording of Kvasir's`);
  if (!magic.equals(MAGIC)) {
    const [theirs, own] = [magic.at(-1), MAGIC.at(-1)];
    throw new RecordingError(`${path} has version ${theirs} of the format; this Kvasir reads version ${own}`);
  }
  const payload = frame(file, MAGIC.length);
  if (payload === null) throw new RecordingError(`${path} ends within its header`);
  let json: unknown = null;
  try {
    json = JSON.parse(payload.toString("utf8"));
  } catch {
    // No header either way.
  }
  const parsed = HeaderShape.safeParse(json);
  if (!parsed.success) throw new RecordingError(`${path} has no header that can be read`);
  return { header: parsed.data, end: MAGIC.length + FRAME_HEAD_BYTES + payload.length };
}

/** The payload of the frame at this byte; null: the file ends within it. */
function frame(file: Bytes, at: number): Buffer | null {
  const head = file.read(at, FRAME_HEAD_BYTES);
  if (head === null) return null;
  const length = head.readUInt32LE(0);
  if (length > MAX_FRAME_BYTES)
    throw new RecordingError(`${file.path} is damaged at byte ${at}: a frame of ${length} bytes`);
  const payload = file.read(at + FRAME_HEAD_BYTES, length);
  if (payload === null) return null;
  if (crc32(payload) !== head.readUInt32LE(4))
    throw new RecordingError(`${file.path} is damaged at byte ${at}: what is there is not what was written`);
  return payload;
}

/** A file that may be too large to be read at once. */
class Bytes {
  readonly path: string;
  readonly size: number;
  readonly #fd: number;

  constructor(path: string) {
    this.path = path;
    try {
      this.#fd = openSync(path, "r");
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new RecordingError(`${path} cannot be read: ${reason}`, { cause });
    }
    this.size = fstatSync(this.#fd).size;
  }

  /** Null: the file ends before. */
  read(at: number, bytes: number): Buffer | null {
    if (at + bytes > this.size) return null;
    const buffer = Buffer.allocUnsafe(bytes);
    return readSync(this.#fd, buffer, 0, bytes, at) === bytes ? buffer : null;
  }

  close(): void {
    closeSync(this.#fd);
  }
}
