import { MAX_TEXTS, NUMBER } from "./byteWriter.ts";
import { RecordingError } from "./recordingError.ts";

/** Reads what `ByteWriter` wrote. Throws RecordingError for what that never writes. */
export class ByteReader {
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #lastNs = 0;
  #texts: string[] = [];

  /** Goes on with the next bytes. */
  load(bytes: Buffer): void {
    this.#bytes = bytes;
    this.#at = 0;
  }

  reset(): void {
    this.#lastNs = 0;
    this.#texts = [];
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  byte(): number {
    this.#need(1);
    return this.#bytes[this.#at++]!;
  }

  whole(): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < 8; count++) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) {
        if (value > Number.MAX_SAFE_INTEGER) break;
        return value;
      }
      scale *= 128;
    }
    throw new RecordingError("a number is too large");
  }

  /** A whole number that stands for so many things of at least `bytesEach` bytes, which must be there. */
  count(bytesEach: number): number {
    const count = this.whole();
    if (count * bytesEach > this.left) throw new RecordingError(`${count} entries are announced, but not there`);
    return count;
  }

  number(): number | null {
    const kind = this.byte();
    switch (kind) {
      case NUMBER.nothing:
        return null;
      case NUMBER.whole:
        return this.whole();
      case NUMBER.notANumber:
        return Number.NaN;
      case NUMBER.infinity:
        return Number.POSITIVE_INFINITY;
      case NUMBER.float:
        return this.float();
      default:
        throw new RecordingError(`there is no kind of number ${kind}`);
    }
  }

  float(): number {
    this.#need(8);
    this.#at += 8;
    return this.#bytes.readDoubleLE(this.#at - 8);
  }

  float32(): number {
    this.#need(4);
    this.#at += 4;
    return this.#bytes.readFloatLE(this.#at - 4);
  }

  word(): number {
    this.#need(4);
    this.#at += 4;
    return this.#bytes.readUInt32LE(this.#at - 4);
  }

  /** Fills `into`. */
  words(into: Uint32Array): void {
    this.#need(4 * into.length);
    this.#bytes.copy(Buffer.from(into.buffer, into.byteOffset, 4 * into.length), 0, this.#at);
    this.#at += 4 * into.length;
  }

  time(): number {
    const coded = this.whole();
    if (coded % 2 === 1) return this.float();
    const delta = Math.floor(coded / 4);
    this.#lastNs += coded % 4 === 2 ? -delta : delta;
    return this.#lastNs / 1e6;
  }

  flag(): boolean {
    const value = this.byte();
    if (value > 1) throw new RecordingError(`${value} is neither yes nor no`);
    return value === 1;
  }

  text(): string {
    const coded = this.whole();
    if (coded >= 2) {
      const known = this.#texts[coded - 2];
      if (known === undefined) throw new RecordingError(`there is no text ${coded - 2}`);
      return known;
    }
    const value = this.#spelt();
    if (coded === 1) {
      if (this.#texts.length >= MAX_TEXTS) throw new RecordingError("there are too many texts");
      this.#texts.push(value);
    }
    return value;
  }

  textOrNull(): string | null {
    return this.flag() ? this.text() : null;
  }

  /** Not checked yet: whoever asks knows what it should be. */
  json(): unknown {
    const text = this.#spelt();
    try {
      return JSON.parse(text) as unknown;
    } catch (cause) {
      throw new RecordingError("a part that should be JSON is none", { cause });
    }
  }

  #spelt(): string {
    const bytes = this.count(1);
    this.#at += bytes;
    return this.#bytes.toString("utf8", this.#at - bytes, this.#at);
  }

  #need(bytes: number): void {
    if (this.#at + bytes > this.#bytes.length) throw new RecordingError("a record ends too early");
  }
}
