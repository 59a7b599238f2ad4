import { existsSync, renameSync, rmSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { FRAME_HEAD_BYTES, MAX_FRAME_BYTES, sealFrame } from "../format/frames.ts";
import { seriesFile } from "../format/series.ts";
import type { RecordSink } from "./recordSink.ts";

/** Records are handed to the system in frames of about this size, or after this time. */
const FRAME_BYTES = 64 * 1024;
const FLUSH_MS = 250;
/** A disk that failed is tried again after this. */
const RETRY_MS = 1_000;

export interface RecordingFileOptions {
  /** Of the newest file; older ones are `path.1`, `path.2` and so on. */
  readonly path: string;
  readonly maxBytes: number;
  readonly maxFiles: number;
  /** What may wait for a slow disk. */
  readonly bufferBytes: number;
  readonly onError?: (cause: Error) => void;
}

type Work =
  | { readonly kind: "file"; readonly header: Buffer }
  | { readonly kind: "frame"; readonly frame: Buffer; readonly records: number };

/** Writes frames of records into files that take turns, in the background and within bounds. */
export class RecordingFile implements RecordSink {
  readonly #options: RecordingFileOptions;
  readonly #timer: NodeJS.Timeout;
  #frame = Buffer.allocUnsafeSlow(FRAME_BYTES);
  #at = FRAME_HEAD_BYTES;
  #records = 0;
  /** Of frames that are full and not written. */
  #waitingBytes = 0;
  #work: Work[] = [];
  #working: Promise<void> | null = null;
  #file: FileHandle | null = null;
  /** Of the newest file, with what waits to get there. */
  #fileBytes = Number.POSITIVE_INFINITY;
  #retryMs = 0;
  #lost = 0;
  #written = 0;

  constructor(options: RecordingFileOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#flush(), FLUSH_MS);
    this.#timer.unref();
  }

  get needsFile(): boolean {
    return this.#fileBytes >= this.#options.maxBytes;
  }

  get hasRoom(): boolean {
    return this.#bufferedBytes <= this.#options.bufferBytes / 2 && performance.now() >= this.#retryMs;
  }

  get lostRecords(): number {
    return this.#lost;
  }

  /** To disk, all files together. */
  get writtenBytes(): number {
    return this.#written;
  }

  append(record: Buffer): boolean {
    if (this.#bufferedBytes + record.length > this.#options.bufferBytes) return false;
    if (record.length > MAX_FRAME_BYTES) return false;
    if (this.#at + record.length > this.#frame.length) this.#flush(record.length);
    this.#at += record.copy(this.#frame, this.#at);
    this.#records++;
    this.#fileBytes += record.length;
    return true;
  }

  beginFile(header: Buffer): void {
    this.#flush();
    this.#fileBytes = header.length;
    this.#do({ kind: "file", header });
  }

  /** Resolves when everything is with the system, or lost. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#flush();
    while (this.#working !== null) await this.#working;
    await this.#file?.close().catch(() => undefined);
    this.#file = null;
  }

  get #bufferedBytes(): number {
    return this.#waitingBytes + this.#at;
  }

  #flush(nextBytes = 0): void {
    if (this.#records > 0) {
      const frame = this.#frame.subarray(0, this.#at);
      sealFrame(frame);
      this.#waitingBytes += frame.length;
      this.#do({ kind: "frame", frame, records: this.#records });
      this.#frame = Buffer.allocUnsafeSlow(Math.max(FRAME_BYTES, FRAME_HEAD_BYTES + nextBytes));
    } else if (this.#frame.length < FRAME_HEAD_BYTES + nextBytes)
      this.#frame = Buffer.allocUnsafeSlow(FRAME_HEAD_BYTES + nextBytes);
    this.#at = FRAME_HEAD_BYTES;
    this.#records = 0;
  }

  #do(work: Work): void {
    this.#work.push(work);
    this.#working ??= this.#workOff().finally(() => (this.#working = null));
  }

  async #workOff(): Promise<void> {
    for (let next = this.#work.shift(); next !== undefined; next = this.#work.shift()) {
      try {
        if (next.kind === "file") await this.#begin(next.header);
        else await this.#write(next.frame);
      } catch (caught) {
        if (next.kind === "frame") this.#lost += next.records;
        this.#fail(caught as Error);
      }
      if (next.kind === "frame") this.#waitingBytes -= next.frame.length;
    }
  }

  async #begin(header: Buffer): Promise<void> {
    const { path, maxFiles } = this.#options;
    await this.#file?.close();
    this.#file = null;
    rmSync(seriesFile(path, maxFiles - 1), { force: true });
    for (let age = maxFiles - 2; age >= 0; age--)
      if (existsSync(seriesFile(path, age))) renameSync(seriesFile(path, age), seriesFile(path, age + 1));
    this.#file = await open(path, "wx", 0o600);
    await this.#write(header);
  }

  async #write(bytes: Buffer): Promise<void> {
    if (this.#file === null) throw new Error("no file is open");
    for (let at = 0; at < bytes.length;) at += (await this.#file.write(bytes, at)).bytesWritten;
    this.#written += bytes.length;
  }

  /** The end of the file is not to be relied on, and what was to follow it makes no sense without it. */
  #fail(cause: Error): void {
    for (const work of this.#work) {
      if (work.kind !== "frame") continue;
      this.#lost += work.records;
      this.#waitingBytes -= work.frame.length;
    }
    this.#work = [];
    this.#lost += this.#records;
    this.#at = FRAME_HEAD_BYTES;
    this.#records = 0;
    this.#fileBytes = Number.POSITIVE_INFINITY;
    this.#retryMs = performance.now() + RETRY_MS;
    void this.#file?.close().catch(() => undefined);
    this.#file = null;
    this.#options.onError?.(cause);
  }
}
