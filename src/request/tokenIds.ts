import { CLOSE_BRACKET, COMMA, OPEN_BRACKET } from "./ascii.ts";
import { skipSpace } from "./jsonBytes.ts";

/** Ids below 10^9 fit the integers that the compiler is fast with; no vocabulary is nearly as large. */
const MAX_DIGITS = 9;

/** Reads lists of token ids. A list with anything but plain integers below 10^9 is refused by returning false (or 0). */
export class TokenReader {
  readonly #bytes: Buffer;
  #ids: Uint32Array = new Uint32Array(1024);
  #count = 0;
  /** Position after what was read. */
  at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** The ids of all lists that were read, one after another. */
  tokens(): Uint32Array {
    return this.#ids.subarray(0, this.#count);
  }

  /** `[1, 2, 3]` at `open`. */
  readList(open: number): boolean {
    const bytes = this.#bytes;
    let ids = this.#ids;
    let count = this.#count;
    let at = skipSpace(bytes, open + 1);
    for (;;) {
      let id = 0;
      const start = at;
      let byte = bytes[at]!;
      while (byte >= 0x30 && byte <= 0x39) {
        id = (Math.imul(id, 10) + (byte - 0x30)) | 0;
        byte = bytes[++at]!;
      }
      const digits = at - start;
      if (digits === 0 || digits > MAX_DIGITS || (digits > 1 && bytes[start] === 0x30)) return false;
      if (count === ids.length) ids = this.#grow();
      ids[count++] = id;
      if (byte <= 0x20) byte = bytes[(at = skipSpace(bytes, at))]!;
      if (byte === CLOSE_BRACKET) break;
      if (byte !== COMMA) return false;
      byte = bytes[++at]!;
      if (byte <= 0x20) at = skipSpace(bytes, at);
    }
    this.#count = count;
    this.at = at + 1;
    return true;
  }

  /** `[[1, 2], [3]]` at `open`; returns how many lists. */
  readLists(open: number): number {
    const bytes = this.#bytes;
    let at = skipSpace(bytes, open + 1);
    for (let lists = 1; ; lists++) {
      if (bytes[at] !== OPEN_BRACKET || !this.readList(at)) return 0;
      at = skipSpace(bytes, this.at);
      if (bytes[at] === CLOSE_BRACKET) {
        this.at = at + 1;
        return lists;
      }
      if (bytes[at] !== COMMA) return 0;
      at = skipSpace(bytes, at + 1);
    }
  }

  #grow(): Uint32Array {
    const larger = new Uint32Array(this.#ids.length * 2);
    larger.set(this.#ids);
    return (this.#ids = larger);
  }
}
