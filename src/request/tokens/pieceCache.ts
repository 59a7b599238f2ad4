import { hash } from "node:crypto";
import { detached } from "./detached.ts";

/** From here on a piece is known by its digest: V8 hashes very long strings by their length only. */
const DIGESTED_LENGTH = 8_000;
/** A map entry, two object headers. */
const ENTRY_BYTES = 120;

/** Token ids of pieces of text, the least recently used forgotten first. Bounded in bytes. */
export class PieceCache {
  readonly #maxBytes: number;
  readonly #pieces = new Map<string, Uint32Array>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Memory held, estimated. */
  get bytes(): number {
    return this.#bytes;
  }

  /** What `encode` makes of the piece, remembered. */
  through(piece: string, encode: (piece: string) => Uint32Array): Uint32Array {
    const long = piece.length >= DIGESTED_LENGTH;
    const key = long ? hash("sha256", piece, "base64") : piece;
    const known = this.#pieces.get(key);
    if (known !== undefined) {
      // Last in the map's order is the most recently used.
      this.#pieces.delete(key);
      this.#pieces.set(key, known);
      return known;
    }
    const ids = encode(piece);
    if (bytesOf(key, ids) <= this.#maxBytes) this.#add(long ? key : detached(key), ids);
    return ids;
  }

  #add(key: string, ids: Uint32Array): void {
    this.#pieces.set(key, ids);
    this.#bytes += bytesOf(key, ids);
    for (const [oldest, held] of this.#pieces) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#pieces.delete(oldest);
      this.#bytes -= bytesOf(oldest, held);
    }
  }
}

function bytesOf(key: string, ids: Uint32Array): number {
  return key.length * 2 + ids.byteLength + ENTRY_BYTES;
}
