import { close, openSync, write, writeSync } from "node:fs";
import { promisify } from "node:util";

/** Lines are handed to the system in pieces of this size, or after this time. */
const PIECE_CHARS = 64 * 1024;
const FLUSH_MS = 250;
/** What may wait for a slow disk or terminal; past it lines are given up, requests are not. */
const MAX_WAITING_CHARS = 16 * 1024 * 1024;

const writeTo = promisify(write);

/**
 * Appends lines to a file without ever waiting for it. pino's own destination does this too, but a full disk makes it
 * throw from a timer, and then loop for ever at exit; a router must outlive its log.
 */
export class LineFile {
  readonly #fd: number;
  readonly #owned: boolean;
  readonly #onError: (cause: Error) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #atExit = (): void => this.#flushAtExit();
  #waiting: string[] = [];
  #waitingChars = 0;
  #waitingLines = 0;
  #flushing: Promise<void> | null = null;
  #dropped = 0;

  /** Throws if a path cannot be opened. A number is a file descriptor and stays open. */
  constructor(to: string | number, onError: (cause: Error) => void) {
    this.#owned = typeof to === "string";
    this.#fd = typeof to === "string" ? openSync(to, "a") : to;
    this.#onError = onError;
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS);
    this.#timer.unref();
    process.on("exit", this.#atExit);
  }

  /** Lines that were given up: the destination was too slow, or failed. */
  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    if (this.#waitingChars + line.length > MAX_WAITING_CHARS) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingLines++;
    this.#waitingChars += line.length;
    if (this.#waitingChars >= PIECE_CHARS && this.#flushing === null) void this.flush();
  }

  /** Resolves when what was written before has reached the system. Never rejects. */
  async flush(): Promise<void> {
    while (this.#flushing !== null) await this.#flushing;
    if (this.#waitingLines === 0) return;
    const { bytes, lines } = this.#take();
    this.#flushing = this.#writeOut(bytes, lines);
    await this.#flushing;
    this.#flushing = null;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
    process.off("exit", this.#atExit);
    if (this.#owned) await promisify(close)(this.#fd);
  }

  #take(): { bytes: Buffer; lines: number } {
    const taken = { bytes: Buffer.from(this.#waiting.join("")), lines: this.#waitingLines };
    this.#waiting = [];
    this.#waitingChars = 0;
    this.#waitingLines = 0;
    return taken;
  }

  async #writeOut(bytes: Buffer, lines: number): Promise<void> {
    try {
      for (let at = 0; at < bytes.length;) {
        try {
          at += (await writeTo(this.#fd, bytes, at)).bytesWritten;
        } catch (caught) {
          // A pipe or terminal that is full for the moment.
          if ((caught as NodeJS.ErrnoException).code !== "EAGAIN") throw caught;
          await new Promise((resolve) => setTimeout(resolve, FLUSH_MS / 10));
        }
      }
    } catch (caught) {
      this.#dropped += lines;
      this.#onError(caught as Error);
    }
  }

  #flushAtExit(): void {
    try {
      writeSync(this.#fd, this.#take().bytes);
    } catch {
      // Nobody is left to tell.
    }
  }
}
