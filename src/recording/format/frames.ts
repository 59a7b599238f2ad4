import { crc32 } from "node:zlib";

/** A file begins so, the last byte being the version of what follows. */
export const MAGIC = Buffer.from("KVASIRR\u0002", "latin1");

/**
 * Then come frames: length of the payload and its CRC-32, four bytes each, lowest first, and the payload. The first one
 * is the header, as JSON; each other one holds whole records.
 */
export const FRAME_HEAD_BYTES = 8;
/** No frame is longer than this: a damaged length must not make a reader wait for gigabytes. */
export const MAX_FRAME_BYTES = 64 * 1024 * 1024;

/** What a file says of itself. */
export interface FileHeader {
  /** Of the run of a router that this is a part of. */
  readonly run: string;
  /** Files of a run, from 0 on. */
  readonly part: number;
  /** The version of Kvasir that wrote it. */
  readonly version: string;
  /** Of the scheduler's random source. */
  readonly seed: number;
  readonly keyId: string;
  readonly maxReplicas: number;
}

/** Fills in the head of a frame whose payload is in its place. */
export function sealFrame(frame: Buffer): void {
  const payload = frame.subarray(FRAME_HEAD_BYTES);
  frame.writeUInt32LE(payload.length, 0);
  frame.writeUInt32LE(crc32(payload), 4);
}

export function headerBytes(header: FileHeader): Buffer {
  const payload = Buffer.from(JSON.stringify(header));
  const frame = Buffer.concat([Buffer.alloc(FRAME_HEAD_BYTES), payload]);
  sealFrame(frame);
  return Buffer.concat([MAGIC, frame]);
}
