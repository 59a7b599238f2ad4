import { digestChain, REGIONS_END } from "../chainHash.ts";
import { EMPTY_HASHES } from "../identity.ts";
import { kernel, kernelMemory as memory, STRING_WINDOW_AT } from "../kernel.ts";

/*
 * The chain of block hashes over token ids. Requests and the engines' KV events are hashed by these same functions, so
 * that a block which an engine tells of is found under the hash that a prompt asks for.
 */

/** Larger than any engine's block; bounds the window. */
export const MAX_BLOCK_TOKENS = 8192;

const ID_BYTES = Uint32Array.BYTES_PER_ELEMENT;
/** The kernel hashes in stripes of this many bytes; a block's last one is filled with zeros. */
const STRIPE_BYTES = 32;
const WINDOW_BYTES = MAX_BLOCK_TOKENS * ID_BYTES;
const SEED_AT = Math.ceil(REGIONS_END / 8) * 8;
const HASHES_AT = SEED_AT + 8;
const MAX_HASHES = WINDOW_BYTES / STRIPE_BYTES;
const WINDOW_AT = HASHES_AT + MAX_HASHES * 8;
if (WINDOW_AT + WINDOW_BYTES > STRING_WINDOW_AT) throw new RangeError("the kernel's memory is too small");

const seedView = new BigUint64Array(memory.buffer, SEED_AT, 1);
const hashView = new BigUint64Array(memory.buffer, HASHES_AT, MAX_HASHES);
const windowIds = new Uint32Array(memory.buffer, WINDOW_AT, MAX_BLOCK_TOKENS);

/**
 * The parent of a prompt's first block: what no two prompts may differ in and share blocks.
 *
 * @param adapter the LoRA adapter's name as the engine tells it; null: the base model
 * @param salt the cache salt as the engine gets it; null or "": none
 */
export function chainRoot(adapter: string | null, salt: string | null, blockTokens: number): bigint {
  digestChain.begin(STRIPE_BYTES, EMPTY_HASHES, null);
  let bytes = 0;
  for (const name of [`${blockTokens}`, adapter ?? "", salt ?? ""]) {
    const text = Buffer.from(name, "utf8");
    const framed = Buffer.concat([Buffer.from(`${text.length}:`, "latin1"), text]);
    digestChain.add(framed, 0, framed.length);
    bytes += framed.length;
  }
  digestChain.endDigest(bytes);
  return digestChain.digest();
}

/** The parent to use for a block whose content depends on more than its tokens (an image, embeddings). */
export function keyedParent(parent: bigint, key: string): bigint {
  digestChain.begin(STRIPE_BYTES, EMPTY_HASHES, null);
  const framed = Buffer.from(`${parent.toString(16)}:${key}`, "utf8");
  digestChain.add(framed, 0, framed.length);
  digestChain.endDigest(framed.length);
  return digestChain.digest();
}

/**
 * Hashes full blocks of token ids: h(i) = XXH64(ids of block i as little-endian u32, seed h(i-1)), h(-1) = `parent`.
 *
 * @param blockTokens 1..MAX_BLOCK_TOKENS
 * @param out gets one hash per full block, from `outAt` on; ids after the last full block are not hashed
 * @returns how many blocks were hashed
 */
export function hashTokenBlocks(
  parent: bigint,
  tokenIds: Uint32Array,
  blockTokens: number,
  out: BigUint64Array,
  outAt = 0,
): number {
  if (!Number.isInteger(blockTokens) || blockTokens < 1 || blockTokens > MAX_BLOCK_TOKENS)
    throw new RangeError(`blockTokens is ${blockTokens}, not an integer 1..${MAX_BLOCK_TOKENS}`);
  const blockBytes = Math.ceil((blockTokens * ID_BYTES) / STRIPE_BYTES) * STRIPE_BYTES;
  const blockWords = blockBytes / ID_BYTES;
  const blocks = Math.floor(tokenIds.length / blockTokens);
  const atOnce = Math.floor(WINDOW_BYTES / blockBytes);
  seedView[0] = parent;
  for (let block = 0; block < blocks; block += atOnce) {
    const count = Math.min(atOnce, blocks - block);
    if (blockWords === blockTokens) {
      windowIds.set(tokenIds.subarray(block * blockTokens, (block + count) * blockTokens));
    } else {
      windowIds.fill(0, 0, count * blockWords);
      for (let i = 0; i < count; i++) {
        const from = (block + i) * blockTokens;
        for (let j = 0; j < blockTokens; j++) windowIds[i * blockWords + j] = tokenIds[from + j]!;
      }
    }
    kernel.chain(WINDOW_AT, count, blockBytes, HASHES_AT);
    out.set(hashView.subarray(0, count), outAt + block);
    memory.copyWithin(SEED_AT, HASHES_AT + (count - 1) * 8, HASHES_AT + count * 8);
  }
  return blocks;
}

/** The chain of a whole prompt. */
export function tokenChain(root: bigint, tokenIds: Uint32Array, blockTokens: number): BigUint64Array {
  const hashes = new BigUint64Array(Math.floor(tokenIds.length / blockTokens));
  hashTokenBlocks(root, tokenIds, blockTokens, hashes);
  return hashes;
}
