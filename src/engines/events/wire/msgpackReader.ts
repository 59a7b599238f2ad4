import type { NameTable } from "./nameTable.ts";
import type { TokenSlab } from "./slabs.ts";

/** The bytes are no msgpack, or hold another type than is needed at this place. */
export class MalformedMessage extends Error {
  override readonly name = "MalformedMessage";
}

/** Values whose keys or elements nest deeper than this are refused; the events nest to four. */
const MAX_DEPTH = 16;

const NIL = 0xc0;
const TWO_TO_32 = 4294967296;

/**
 * Reads msgpack from left to right, each value as the type that the place wants. It checks every length against the
 * bytes that are left before it allocates or loops, so no message costs more than a multiple of its own size.
 *
 * Not a package: those build every array of token ids as boxed values, at a multiple of the time
 * (`bench/kv-events.bench.ts`).
 */
export class MsgpackReader {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  /** Offset of the next value. */
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Whether the next value is nil, which is then read. */
  nil(): boolean {
    if (this.#peek() !== NIL) return false;
    this.at++;
    return true;
  }

  isArray(): boolean {
    const type = this.#peek();
    return (type & 0xf0) === 0x90 || type === 0xdc || type === 0xdd;
  }

  isMap(): boolean {
    const type = this.#peek();
    return (type & 0xf0) === 0x80 || type === 0xde || type === 0xdf;
  }

  isString(): boolean {
    const type = this.#peek();
    return (type & 0xe0) === 0xa0 || (type >= 0xd9 && type <= 0xdb);
  }

  isBytes(): boolean {
    const type = this.#peek();
    return type >= 0xc4 && type <= 0xc6;
  }

  /** Number of elements, which follow. */
  array(): number {
    const type = this.#uint8();
    if ((type & 0xf0) === 0x90) return this.#fits(type & 0x0f);
    if (type === 0xdc) return this.#fits(this.#uint16());
    if (type === 0xdd) return this.#fits(this.#uint32());
    throw new MalformedMessage("not an array");
  }

  /** Number of pairs, which follow. */
  map(): number {
    const type = this.#uint8();
    if ((type & 0xf0) === 0x80) return this.#fits(type & 0x0f);
    if (type === 0xde) return this.#fits(this.#uint16());
    if (type === 0xdf) return this.#fits(this.#uint32());
    throw new MalformedMessage("not a map");
  }

  /** Reads a string and finds it in a table. */
  name<Value>(table: NameTable<Value>): Value | undefined {
    const length = this.#stringLength();
    const start = this.at;
    this.at += length;
    return table.find(this.bytes, start, length);
  }

  string(): string {
    const length = this.#stringLength();
    this.at += length;
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset + this.at - length, length).toString("utf8");
  }

  /** Any number. Integers beyond 2^53 lose their low bits. */
  number(): number {
    const type = this.#uint8();
    if (type < 0x80) return type;
    if (type >= 0xe0) return type - 0x100;
    switch (type) {
      case 0xca:
        return this.#view.getFloat32(this.#take(4));
      case 0xcb:
        return this.#view.getFloat64(this.#take(8));
      case 0xcc:
        return this.#uint8();
      case 0xcd:
        return this.#uint16();
      case 0xce:
        return this.#uint32();
      case 0xcf:
        return Number(this.#view.getBigUint64(this.#take(8)));
      case 0xd0:
        return this.#view.getInt8(this.#take(1));
      case 0xd1:
        return this.#view.getInt16(this.#take(2));
      case 0xd2:
        return this.#view.getInt32(this.#take(4));
      case 0xd3:
        return Number(this.#view.getBigInt64(this.#take(8)));
      default:
        throw new MalformedMessage("not a number");
    }
  }

  /**
   * A block hash as two words, low first: an integer modulo 2^64, or the last 8 bytes of a digest, big-endian
   * (a shorter one counts as having zeros in front).
   */
  hash(words: Uint32Array, index: number): void {
    const type = this.#peek();
    if (type === 0xcf || type === 0xd3) {
      const at = this.#take(9) + 1;
      words[index] = this.#view.getUint32(at + 4);
      words[index + 1] = this.#view.getUint32(at);
    } else if (this.isBytes()) {
      const length = this.#bytesLength();
      const end = this.#take(length) + length;
      words[index] = this.#tail(end, length);
      words[index + 1] = this.#tail(end - 4, length - 4);
    } else {
      const value = this.number();
      if (!Number.isInteger(value)) throw new MalformedMessage("not a hash");
      words[index] = value;
      words[index + 1] = Math.floor(value / TWO_TO_32);
    }
  }

  /**
   * An array of token ids. What is no 32-bit number is told by `odd`, which reads one value and may give a number for
   * it.
   */
  tokenIds(slab: TokenSlab, odd: (index: number) => number): Uint32Array {
    const count = this.array();
    const ids = slab.cut(count);
    const { bytes } = this;
    const end = bytes.length;
    let at = this.at;
    for (let index = 0; index < count; index++) {
      const type = at < end ? bytes[at]! : NIL;
      if (type < 0x80) {
        ids[index] = type;
        at += 1;
      } else if (type === 0xcd && at + 3 <= end) {
        ids[index] = (bytes[at + 1]! << 8) | bytes[at + 2]!;
        at += 3;
      } else if (type === 0xce && at + 5 <= end) {
        ids[index] = (bytes[at + 1]! << 24) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!;
        at += 5;
      } else if (type === 0xcc && at + 2 <= end) {
        ids[index] = bytes[at + 1]!;
        at += 2;
      } else {
        this.at = at;
        ids[index] = odd(index);
        at = this.at;
      }
    }
    this.at = at;
    return ids;
  }

  /** Any value: number, string, boolean, null, array, bytes as hex; a map as an array of its pairs. */
  any(depth = 0): unknown {
    if (depth > MAX_DEPTH) throw new MalformedMessage("nested too deep");
    if (this.nil()) return null;
    if (this.isString()) return this.string();
    if (this.isBytes()) {
      const length = this.#bytesLength();
      const start = this.#take(length);
      return Buffer.from(this.bytes.subarray(start, start + length)).toString("hex");
    }
    const type = this.#peek();
    if (type === 0xc2 || type === 0xc3) {
      this.at++;
      return type === 0xc3;
    }
    const isMap = this.isMap();
    if (!isMap && !this.isArray()) return this.number();
    const values: unknown[] = [];
    for (let left = isMap ? 2 * this.map() : this.array(); left > 0; left--) values.push(this.any(depth + 1));
    return values;
  }

  /** Passes over one value with all that is in it. */
  skip(): void {
    for (let left = 1; left > 0; left--) left += this.#skipOne();
  }

  /** Passes over a value but not what is in it, of which it gives the number. */
  #skipOne(): number {
    const type = this.#peek();
    if (this.isArray()) return this.array();
    if (this.isMap()) return 2 * this.map();
    if (this.isString()) this.#take(this.#stringLength());
    else if (this.isBytes()) this.#take(this.#bytesLength());
    else if (type === NIL || type === 0xc2 || type === 0xc3) this.at++;
    else if (type >= 0xc7 && type <= 0xc9) this.#take(this.#extensionLength());
    else if (type >= 0xd4 && type <= 0xd8) this.#take(2 + 2 ** (type - 0xd4));
    else this.number();
    return 0;
  }

  #peek(): number {
    if (this.at >= this.bytes.length) throw new MalformedMessage("ends early");
    return this.bytes[this.at]!;
  }

  /** The offset of the next `count` bytes, which are then behind. */
  #take(count: number): number {
    const start = this.at;
    if (count > this.bytes.length - start) throw new MalformedMessage("ends early");
    this.at = start + count;
    return start;
  }

  /** An element takes at least a byte. */
  #fits(count: number): number {
    if (count > this.bytes.length - this.at) throw new MalformedMessage("ends early");
    return count;
  }

  #uint8(): number {
    return this.bytes[this.#take(1)]!;
  }

  #uint16(): number {
    return this.#view.getUint16(this.#take(2));
  }

  #uint32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  #stringLength(): number {
    const type = this.#uint8();
    if ((type & 0xe0) === 0xa0) return this.#fits(type & 0x1f);
    if (type === 0xd9) return this.#fits(this.#uint8());
    if (type === 0xda) return this.#fits(this.#uint16());
    if (type === 0xdb) return this.#fits(this.#uint32());
    throw new MalformedMessage("not a string");
  }

  #bytesLength(): number {
    const type = this.#uint8();
    if (type === 0xc4) return this.#uint8();
    return type === 0xc5 ? this.#uint16() : this.#uint32();
  }

  /** With the byte for the extension's own type. */
  #extensionLength(): number {
    const type = this.#uint8();
    return 1 + (type === 0xc7 ? this.#uint8() : type === 0xc8 ? this.#uint16() : this.#uint32());
  }

  /** The word before `end`, of which only the last `length` bytes belong to the value. */
  #tail(end: number, length: number): number {
    if (length >= 4) return this.#view.getUint32(end - 4);
    let word = 0;
    for (let at = end - Math.max(0, length); at < end; at++) word = (word << 8) | this.bytes[at]!;
    return word >>> 0;
  }
}
