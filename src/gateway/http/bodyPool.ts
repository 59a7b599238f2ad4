/** Smaller bodies come in one read and are not copied at all. */
const SMALLEST_SHIFT = 16;
const LARGEST_SHIFT = 22;
/** Kept for reuse, all sizes together. */
const KEPT_MAX_BYTES = 64 * 1024 * 1024;

/**
 * Buffers for bodies of 64 KiB to 4 MiB, used again. Memory fresh from the system costs more than copying a body into
 * it: a page fault per 4 KiB, and garbage collections hastened by the megabytes that hang on few objects.
 */
export class BodyPool {
  readonly #kept: Buffer[][] = [];
  #keptBytes = 0;
  #heldBytes = 0;

  get keptBytes(): number {
    return this.#keptBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Counts `bytes` of a body that is being received or in hand. False, and not counted: that would be too many. */
  hold(bytes: number, maxBytes: number): boolean {
    if (this.#heldBytes + bytes > maxBytes) return false;
    this.#heldBytes += bytes;
    return true;
  }

  letGo(bytes: number): void {
    this.#heldBytes -= bytes;
  }

  /** A buffer of at least `bytes`, with anything in it. */
  take(bytes: number): Buffer {
    const shift = shiftFor(bytes);
    if (shift > LARGEST_SHIFT) return Buffer.allocUnsafeSlow(bytes);
    const kept = this.#kept[shift]?.pop();
    if (kept === undefined) return Buffer.allocUnsafeSlow(2 ** shift);
    this.#keptBytes -= kept.length;
    return kept;
  }

  /** Gives back what `take` returned. Whoever reads the buffer afterwards may read another request's body. */
  give(buffer: Buffer): void {
    const shift = shiftFor(buffer.length);
    if (shift > LARGEST_SHIFT || this.#keptBytes + buffer.length > KEPT_MAX_BYTES) return;
    (this.#kept[shift] ??= []).push(buffer);
    this.#keptBytes += buffer.length;
  }
}

function shiftFor(bytes: number): number {
  return Math.max(SMALLEST_SHIFT, Math.ceil(Math.log2(Math.max(1, bytes))));
}
