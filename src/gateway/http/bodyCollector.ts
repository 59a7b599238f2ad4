const EMPTY = Buffer.alloc(0);

/** Gathers a body into one buffer, without copying it where it came in one piece. */
export class BodyCollector {
  readonly #expected: number | null;
  readonly #maxBytes: number;
  /** Of the expected size, where that is known. */
  #whole: Buffer | null = null;
  #parts: Buffer[] = [];
  #used = 0;

  constructor(expectedBytes: number | null, maxBytes: number) {
    this.#expected = expectedBytes;
    this.#maxBytes = maxBytes;
  }

  /** False: it has become larger than allowed. `bytes` must stay as they are. */
  add(bytes: Buffer, start: number, end: number): boolean {
    const length = end - start;
    if (this.#used + length > this.#maxBytes) {
      this.#parts = [];
      return false;
    }
    if (this.#expected === null || this.#expected === length) {
      this.#parts.push(bytes.subarray(start, end));
    } else {
      // Of its own: a slice of the shared pool would keep the pool alive.
      this.#whole ??= Buffer.allocUnsafeSlow(this.#expected);
      bytes.copy(this.#whole, this.#used, start, end);
    }
    this.#used += length;
    return true;
  }

  body(): Buffer {
    if (this.#whole !== null) return this.#whole;
    const [first = EMPTY] = this.#parts;
    return this.#parts.length <= 1 ? first : Buffer.concat(this.#parts, this.#used);
  }
}
