import type { ByteReader } from "../format/byteReader.ts";
import { LINK_HASHES, MAX_LINKS, startsAnew } from "../format/chains.ts";
import type { HashKey } from "../format/hashKey.ts";
import { RecordingError } from "../format/recordingError.ts";

/** Reads what `ChainWriter` wrote. Without the key, hashes stay enciphered: equal ones are equal, and no more. */
export class ChainReader {
  readonly #key: HashKey | null;
  /** By link: its hashes, and which link comes before it; -1: none. */
  #hashes: BigUint64Array[] = [];
  #before: number[] = [];

  constructor(key: HashKey | null) {
    this.#key = key;
  }

  reset(): void {
    this.#hashes = [];
    this.#before = [];
  }

  read(from: ByteReader): BigUint64Array {
    const length = from.whole();
    if (startsAnew(this.#hashes.length, length)) this.reset();
    const known = from.whole();
    const links = Math.floor(length / LINK_HASHES);
    if (known > Math.min(links, this.#hashes.length))
      throw new RecordingError("a chain has more in common with others than there is");
    let last = known === 0 ? -1 : from.whole();
    const literals = length - known * LINK_HASHES;
    if (8 * literals > from.left) throw new RecordingError(`${literals} hashes are announced, but not there`);
    const hashes = new BigUint64Array(length);
    for (let link = known - 1, number = last; link >= 0; link--) {
      const own = this.#hashes[number];
      if (own === undefined) throw new RecordingError(`a chain goes on from link ${number}, which there is not`);
      hashes.set(own, link * LINK_HASHES);
      number = this.#before[number]!;
      if (number === -1 && link > 0) throw new RecordingError("a chain is shorter than it should be");
    }
    hashes.set(this.#literals(from, literals), known * LINK_HASHES);
    for (let link = known; link < links && this.#hashes.length < MAX_LINKS; link++) {
      this.#hashes.push(hashes.slice(link * LINK_HASHES, (link + 1) * LINK_HASHES));
      this.#before.push(last);
      last = this.#hashes.length - 1;
    }
    return hashes;
  }

  literals(from: ByteReader): BigUint64Array {
    return this.#literals(from, from.count(8));
  }

  /** One that is not counted. */
  single(from: ByteReader): bigint {
    return this.#literals(from, 1)[0]!;
  }

  #literals(from: ByteReader, count: number): BigUint64Array {
    const hashes = new BigUint64Array(count);
    const halves = new Uint32Array(hashes.buffer);
    from.words(halves);
    this.#key?.decipher(halves);
    return hashes;
  }
}
