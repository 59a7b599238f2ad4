/** Where a chain of block hashes starts: prompts under different adapters or salts must not share blocks. */
export interface ChainSeed {
  readonly adapter: string | null;
  readonly salt: string | null;
  readonly hashSeed?: number;
}

/**
 * The chained 64-bit hash of each full block. Two 32-bit lanes of multiply, rotate and final mixing in the manner of
 * MurmurHash3: good enough to tell an emulator's prompts apart, without a BigInt per block.
 */
export function blockHashes(tokens: Uint32Array, blockTokens: number, seed: ChainSeed): BigUint64Array {
  const blocks = Math.floor(tokens.length / blockTokens);
  const hashes = new BigUint64Array(blocks);
  const words = new Uint32Array(hashes.buffer);
  let low = seedWord(seed, 0x9747b28c);
  let high = seedWord(seed, 0x3c6ef372);
  for (let block = 0; block < blocks; block++) {
    const end = (block + 1) * blockTokens;
    for (let at = block * blockTokens; at < end; at++) {
      const token = tokens[at] ?? 0;
      low = absorb(low, token);
      high = absorb(high ^ low, token);
    }
    low = finish(low ^ blockTokens);
    high = finish(high ^ low);
    words[block * 2] = low;
    words[block * 2 + 1] = high;
  }
  return hashes;
}

/** A 32-bit hash of a whole token sequence, for seeding what is drawn from it. */
export function tokensSeed(tokens: Uint32Array, start: number): number {
  let hash = start;
  for (const token of tokens) hash = absorb(hash, token);
  return finish(hash ^ tokens.length);
}

export function textSeed(text: string, start = 0): number {
  let hash = start;
  for (let at = 0; at < text.length; at++) hash = absorb(hash, text.charCodeAt(at));
  return finish(hash ^ text.length);
}

function seedWord(seed: ChainSeed, start: number): number {
  return textSeed(`${seed.adapter ?? ""}\u0000${seed.salt ?? ""}`, start ^ (seed.hashSeed ?? 0));
}

function absorb(hash: number, word: number): number {
  let mixed = Math.imul(word, 0xcc9e2d51);
  mixed = Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
  const rotated = hash ^ mixed;
  return (Math.imul((rotated << 13) | (rotated >>> 19), 5) + 0xe6546b64) | 0;
}

function finish(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
