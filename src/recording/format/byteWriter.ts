/** How `number` writes values that are no whole number from 0 to 2^53. */
export const NUMBER = { whole: 0, float: 1, notANumber: 2, infinity: 3, nothing: 4 } as const;

/** Texts that one section gives a number to; what comes later is spelt out each time. */
export const MAX_TEXTS = 4096;
/** Longer ones are unlikely to come again. */
export const MAX_TEXT_BYTES = 256;

const TWO_28 = 2 ** 28;

/**
 * Writes values into one buffer that grows and is used again. Whole numbers take seven bits a byte; times are nanoseconds
 * since the time written before; texts are written once and then called by number.
 */
export class ByteWriter {
  #bytes = Buffer.allocUnsafeSlow(16 * 1024);
  #at = 0;
  #lastNs = 0;
  readonly #texts = new Map<string, number>();

  get length(): number {
    return this.#at;
  }

  /** What was written since `start`; valid until the next one. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  /** Begins a record. */
  start(): void {
    this.#at = 0;
  }

  /** Forgets what a reader would have to know from before. */
  reset(): void {
    this.#lastNs = 0;
    this.#texts.clear();
  }

  byte(value: number): void {
    this.#room(1);
    this.#bytes[this.#at++] = value;
  }

  /** @param value whole, 0..2^53 */
  whole(value: number): void {
    this.#room(8);
    let left = value;
    while (left >= TWO_28) {
      this.#bytes[this.#at++] = (left % 128) | 128;
      left = Math.floor(left / 128);
    }
    while (left >= 128) {
      this.#bytes[this.#at++] = (left & 127) | 128;
      left >>>= 7;
    }
    this.#bytes[this.#at++] = left;
  }

  /** Any number, exactly; null: none. */
  number(value: number | null): void {
    if (value === null) this.byte(NUMBER.nothing);
    else if (Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0)) {
      this.byte(NUMBER.whole);
      this.whole(value);
    } else if (Number.isNaN(value)) this.byte(NUMBER.notANumber);
    else if (value === Number.POSITIVE_INFINITY) this.byte(NUMBER.infinity);
    else {
      this.byte(NUMBER.float);
      this.float(value);
    }
  }

  float(value: number): void {
    this.#room(8);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  float32(value: number): void {
    this.#room(4);
    this.#at = this.#bytes.writeFloatLE(value, this.#at);
  }

  word(value: number): void {
    this.#room(4);
    this.#at = this.#bytes.writeUInt32LE(value >>> 0, this.#at);
  }

  /**
   * A time of the process clock, exactly: it counts in nanoseconds. What does not is written as it is. The lowest bit
   * tells which, the next one the sign.
   */
  time(ms: number): void {
    const ns = Math.round(ms * 1e6);
    const delta = ns - this.#lastNs;
    if (ns / 1e6 !== ms || !(Math.abs(delta) < 2 ** 50)) {
      this.whole(1);
      this.float(ms);
      return;
    }
    this.#lastNs = ns;
    this.whole(4 * Math.abs(delta) + (delta < 0 ? 2 : 0));
  }

  /** The first `count` of them. */
  words(values: Uint32Array, count: number): void {
    this.#room(4 * count);
    // The machines that this runs on all store the lowest byte first.
    Buffer.from(values.buffer, values.byteOffset, 4 * count).copy(this.#bytes, this.#at);
    this.#at += 4 * count;
  }

  flag(value: boolean): void {
    this.byte(value ? 1 : 0);
  }

  text(value: string): void {
    const known = this.#texts.get(value);
    if (known !== undefined) {
      this.whole(known + 2);
      return;
    }
    const bytes = Buffer.byteLength(value);
    const kept = this.#texts.size < MAX_TEXTS && bytes <= MAX_TEXT_BYTES;
    this.whole(kept ? 1 : 0);
    this.#spell(value, bytes);
    if (kept) this.#texts.set(value, this.#texts.size);
  }

  textOrNull(value: string | null): void {
    this.flag(value !== null);
    if (value !== null) this.text(value);
  }

  json(value: unknown): void {
    const text = JSON.stringify(value);
    this.#spell(text, Buffer.byteLength(text));
  }

  #spell(value: string, bytes: number): void {
    this.whole(bytes);
    this.#room(bytes);
    this.#at += this.#bytes.write(value, this.#at);
  }

  #room(bytes: number): void {
    const needed = this.#at + bytes;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }
}
