import { createHmac } from "node:crypto";

const ROUNDS = 27;
export const KEY_BYTES = 16;
/** Characters of a pseudonym: 60 bits, so that a million tenants have none in common. */
const PSEUDONYM_CHARS = 10;

/**
 * What stands in a recording for what must not be guessed from it. A prompt's hash is an open function of its text: who
 * has the hash can try texts. So hashes are recorded enciphered, by a key of the installation (Speck64/128, Beaulieu et
 * al. 2013: equal hashes stay equal, others stay apart, and only the key gives them back), names by HMAC-SHA256, which
 * nothing gives back.
 */
export class HashKey {
  readonly #key: Buffer;
  readonly #schedule: Uint32Array;

  /** Throws RangeError unless there are KEY_BYTES of it. */
  constructor(key: Buffer) {
    if (key.length !== KEY_BYTES) throw new RangeError(`a key has ${KEY_BYTES} bytes, not ${key.length}`);
    this.#key = Buffer.from(key);
    this.#schedule = expanded(this.#key);
  }

  /** Tells two keys apart, and nothing of either. */
  get id(): string {
    return this.#mac("key id", "");
  }

  pseudonym(kind: string, name: string): string {
    return this.#mac(kind, name);
  }

  /** Of a tenant, `key` or `key/tenant`: part by part, so that a key's weight still finds its tenants. */
  tenant(name: string): string {
    return name
      .split("/")
      .map((part) => this.pseudonym("tenant", part))
      .join("/");
  }

  /** Hashes as halves (low, high), `from` into `to`, in place if they are one. */
  encipher(from: Uint32Array, fromAt: number, to: Uint32Array, toAt: number, hashes: number): void {
    const schedule = this.#schedule;
    for (let at = 0; at < 2 * hashes; at += 2) {
      let low = from[fromAt + at]!;
      let high = from[fromAt + at + 1]!;
      for (let round = 0; round < ROUNDS; round++) {
        high = ((((high >>> 8) | (high << 24)) + low) | 0) ^ schedule[round]!;
        low = ((low << 3) | (low >>> 29)) ^ high;
      }
      to[toAt + at] = low;
      to[toAt + at + 1] = high;
    }
  }

  /** Gives back what was enciphered, in place. */
  decipher(halves: Uint32Array): void {
    const schedule = this.#schedule;
    for (let at = 0; at < halves.length; at += 2) {
      let low = halves[at]!;
      let high = halves[at + 1]!;
      for (let round = ROUNDS - 1; round >= 0; round--) {
        const before = low ^ high;
        low = (before >>> 3) | (before << 29);
        const sum = ((high ^ schedule[round]!) - low) | 0;
        high = (sum << 8) | (sum >>> 24);
      }
      halves[at] = low;
      halves[at + 1] = high;
    }
  }

  #mac(kind: string, name: string): string {
    return createHmac("sha256", this.#key).update(`${kind}\n${name}`).digest("base64url").slice(0, PSEUDONYM_CHARS);
  }
}

/** The round keys of Speck64/128. */
function expanded(key: Buffer): Uint32Array {
  const words = [0, 1, 2, 3].map((at) => key.readUInt32LE(4 * at));
  const schedule = new Uint32Array(ROUNDS);
  let own = words[0]!;
  const others = words.slice(1);
  for (let round = 0; round < ROUNDS; round++) {
    schedule[round] = own;
    const other = others[round % 3]!;
    const next = ((own + ((other >>> 8) | (other << 24))) | 0) ^ round;
    others[round % 3] = next;
    own = ((own << 3) | (own >>> 29)) ^ next;
  }
  return schedule;
}
