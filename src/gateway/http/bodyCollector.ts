import type { BodyPool } from "./bodyPool.ts";

const EMPTY = Buffer.alloc(0);

/** Gathers a body into one buffer. */
export class BodyCollector {
  readonly #expected: number | null;
  readonly #maxBytes: number;
  readonly #pool: BodyPool;
  /** From the pool, where the size is known and the body comes in pieces. */
  #whole: Buffer | null = null;
  #parts: Buffer[] = [];
  #used = 0;

  /** `expectedBytes` null: not known beforehand. */
  constructor(expectedBytes: number | null, maxBytes: number, pool: BodyPool) {
    this.#expected = expectedBytes;
    this.#maxBytes = maxBytes;
    this.#pool = pool;
  }

  /** Copies the bytes. False: the body has become larger than allowed. */
  add(bytes: Buffer, start: number, end: number): boolean {
    const length = end - start;
    if (this.#used + length > this.#maxBytes) {
      this.#parts = [];
      return false;
    }
    if (this.#expected === null || this.#expected === length) {
      this.#parts.push(Buffer.from(bytes.subarray(start, end)));
    } else {
      this.#whole ??= this.#pool.take(this.#expected);
      bytes.copy(this.#whole, this.#used, start, end);
    }
    this.#used += length;
    return true;
  }

  body(): Buffer {
    if (this.#whole !== null) return this.#whole.subarray(0, this.#used);
    const [first = EMPTY] = this.#parts;
    return this.#parts.length <= 1 ? first : Buffer.concat(this.#parts, this.#used);
  }

  /** Lets the memory be used for another body. */
  release(): void {
    if (this.#whole !== null) this.#pool.give(this.#whole);
    this.#whole = null;
  }
}
