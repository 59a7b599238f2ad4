const TWO_TO_32 = 2n ** 32n;

/**
 * Writes msgpack as Python's msgspec does, byte for byte: every integer in its shortest form and unsigned if it is not
 * negative. Packages for JavaScript write large integers as signed ones.
 */
export class MsgpackWriter {
  #buffer = Buffer.allocUnsafe(1024);
  #at = 0;

  /** A copy of what was written. */
  take(): Buffer {
    const bytes = Buffer.from(this.#buffer.subarray(0, this.#at));
    this.#at = 0;
    return bytes;
  }

  nil(): this {
    return this.#byte(0xc0);
  }

  array(length: number): this {
    return this.#head(length, 0x90, 15, [null, 0xdc, 0xdd]);
  }

  map(members: number): this {
    return this.#head(members, 0x80, 15, [null, 0xde, 0xdf]);
  }

  string(text: string): this {
    const bytes = Buffer.byteLength(text);
    this.#head(bytes, 0xa0, 31, [0xd9, 0xda, 0xdb]);
    this.#reserve(bytes);
    this.#at += this.#buffer.write(text, this.#at, "utf8");
    return this;
  }

  bytes(bytes: Uint8Array): this {
    this.#head(bytes.length, 0, -1, [0xc4, 0xc5, 0xc6]);
    this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.#at);
    this.#at += bytes.length;
    return this;
  }

  float(value: number): this {
    this.#byte(0xcb);
    this.#reserve(8);
    this.#at = this.#buffer.writeDoubleBE(value, this.#at);
    return this;
  }

  /** An integer from 0 to 2^32 - 1. */
  uint(value: number): this {
    this.#reserve(5);
    if (value < 0x80) {
      this.#buffer[this.#at++] = value;
    } else if (value < 0x100) {
      this.#buffer[this.#at++] = 0xcc;
      this.#buffer[this.#at++] = value;
    } else if (value < 0x10000) {
      this.#buffer[this.#at++] = 0xcd;
      this.#at = this.#buffer.writeUInt16BE(value, this.#at);
    } else {
      this.#buffer[this.#at++] = 0xce;
      this.#at = this.#buffer.writeUInt32BE(value, this.#at);
    }
    return this;
  }

  /** Any integer of 64 bits, signed or not. */
  int(value: bigint): this {
    if (value >= 0n && value < TWO_TO_32) return this.uint(Number(value));
    if (value >= -32n && value < 0n) return this.#byte(Number(BigInt.asUintN(8, value)));
    this.#reserve(9);
    if (value >= 0n) {
      this.#buffer[this.#at++] = 0xcf;
      this.#at = this.#buffer.writeBigUInt64BE(value, this.#at);
    } else if (value >= -(2n ** 7n)) {
      this.#buffer[this.#at++] = 0xd0;
      this.#at = this.#buffer.writeInt8(Number(value), this.#at);
    } else if (value >= -(2n ** 15n)) {
      this.#buffer[this.#at++] = 0xd1;
      this.#at = this.#buffer.writeInt16BE(Number(value), this.#at);
    } else if (value >= -(2n ** 31n)) {
      this.#buffer[this.#at++] = 0xd2;
      this.#at = this.#buffer.writeInt32BE(Number(value), this.#at);
    } else {
      this.#buffer[this.#at++] = 0xd3;
      this.#at = this.#buffer.writeBigInt64BE(value, this.#at);
    }
    return this;
  }

  /** Lengths up to `short` go into the first byte; `types`: what says that 1, 2 or 4 bytes of length follow. */
  #head(length: number, first: number, short: number, types: readonly [number | null, number, number]): this {
    if (length <= short) return this.#byte(first | length);
    this.#reserve(5);
    const [one, two, four] = types;
    if (one !== null && length < 0x100) {
      this.#buffer[this.#at++] = one;
      this.#buffer[this.#at++] = length;
    } else if (length < 0x10000) {
      this.#buffer[this.#at++] = two;
      this.#at = this.#buffer.writeUInt16BE(length, this.#at);
    } else {
      this.#buffer[this.#at++] = four;
      this.#at = this.#buffer.writeUInt32BE(length, this.#at);
    }
    return this;
  }

  #byte(value: number): this {
    this.#reserve(1);
    this.#buffer[this.#at++] = value;
    return this;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#at + bytes, this.#buffer.length * 2));
    this.#buffer.copy(grown, 0, 0, this.#at);
    this.#buffer = grown;
  }
}
