import { MOONCAKE_BLOCK_TOKENS } from "#src/simulator/traces/mooncake.ts";
import { readTrace } from "#src/simulator/traces/readTrace.ts";
import type { KvEvent, KvEventBatch } from "#src/engines/events/kvEvent.ts";

export const BLOCK_TOKENS = 16;
const BLOCKS_PER_ID = MOONCAKE_BLOCK_TOKENS / BLOCK_TOKENS;
/** vLLM computes a prompt in chunks of so many tokens and publishes after each. */
const CHUNK_BLOCKS = 8192 / BLOCK_TOKENS;

export interface TraceRequest {
  /** Content of each full block; equal ids mean equal prefixes. */
  readonly blocks: Float64Array;
  /** Full blocks that its answer fills. */
  readonly answerBlocks: number;
}

/** A Mooncake trace, its ids cut into blocks of 16 tokens. */
export function readTraceBlocks(path: string): TraceRequest[] {
  return readTrace(path).rows.map(({ promptTokens, outputTokens, content }) => {
    const blocks = new Float64Array(Math.floor(promptTokens / BLOCK_TOKENS));
    for (let at = 0; at < blocks.length; at++)
      blocks[at] = content!.ids[Math.floor(at / BLOCKS_PER_ID)]! * BLOCKS_PER_ID + (at % BLOCKS_PER_ID);
    return { blocks, answerBlocks: Math.floor(outputTokens / BLOCK_TOKENS) };
  });
}

/** The token ids of a block: some, always the same. */
export function writeTokens(block: number, into: Uint32Array, at: number): void {
  for (let token = 0; token < BLOCK_TOKENS; token++)
    into[at + token] = (Math.imul(block * BLOCK_TOKENS + token + 1, 0x9e3779b1) >>> 0) % 128_000;
}

export function tokensOf(blocks: Float64Array): Uint32Array {
  const tokens = new Uint32Array(blocks.length * BLOCK_TOKENS);
  for (let at = 0; at < blocks.length; at++) writeTokens(blocks[at]!, tokens, at * BLOCK_TOKENS);
  return tokens;
}

/** One engine's prefix cache: least recently used blocks go, those further from the root first, one event each. */
export class TraceEngine {
  readonly #capacityBlocks: number;
  readonly #seed: number;
  readonly #held = new Map<number, true>();
  #seq = 0;
  #answers = 0;

  constructor(capacityBlocks: number, seed: number) {
    this.#capacityBlocks = capacityBlocks;
    this.#seed = seed;
  }

  get held(): number {
    return this.#held.size;
  }

  /** What it publishes while it answers. */
  run({ blocks, answerBlocks }: TraceRequest): KvEventBatch[] {
    const batches: KvEventBatch[] = [];
    let hits = 0;
    while (hits < blocks.length && this.#held.has(blocks[hits]!)) hits++;
    this.#touch(blocks, hits);
    for (let at = hits; at < blocks.length; at += CHUNK_BLOCKS)
      batches.push(this.#store(blocks, at, Math.min(blocks.length, at + CHUNK_BLOCKS)));
    this.#touch(blocks, blocks.length);
    const whole = new Float64Array(blocks.length + answerBlocks);
    whole.set(blocks);
    for (let at = blocks.length; at < whole.length; at++) {
      whole[at] = -1 - (this.#seed * 1e9 + this.#answers++);
      batches.push(this.#store(whole, at, at + 1));
    }
    return batches;
  }

  /** The tail will be the first to go. */
  #touch(blocks: Float64Array, count: number): void {
    for (let at = count - 1; at >= 0; at--) {
      this.#held.delete(blocks[at]!);
      this.#held.set(blocks[at]!, true);
    }
  }

  #store(blocks: Float64Array, from: number, to: number): KvEventBatch {
    const events: KvEvent[] = [];
    for (const block of this.#held.keys()) {
      if (this.#held.size + to - from <= this.#capacityBlocks) break;
      this.#held.delete(block);
      events.push({ kind: "removed", engineHashes: BigUint64Array.of(this.#hash(block)), tier: "gpu", group: 0 });
    }
    const tokenIds = new Uint32Array((to - from) * BLOCK_TOKENS);
    for (let at = from; at < to; at++) {
      this.#held.set(blocks[at]!, true);
      writeTokens(blocks[at]!, tokenIds, (at - from) * BLOCK_TOKENS);
    }
    events.push({
      kind: "stored",
      engineHashes: BigUint64Array.from(blocks.subarray(from, to) as unknown as ArrayLike<bigint>, (block) =>
        this.#hash(block as unknown as number),
      ),
      parent: from === 0 ? null : this.#hash(blocks[from - 1]!),
      tokenIds,
      blockTokens: BLOCK_TOKENS,
      tier: "gpu",
      group: 0,
      fullAttention: true,
      loraName: null,
      salt: null,
      blockKeys: null,
    });
    return { rank: 0, seq: this.#seq++, publishedMs: 0, events, unreadableEvents: 0 };
  }

  #hash(block: number): bigint {
    const low = Math.imul(block ^ this.#seed, 0x85ebca6b) ^ (block / 2 ** 20);
    const high = Math.imul(low ^ block, 0x9e3779b1) ^ this.#seed;
    return (BigInt(high >>> 0) << 32n) | BigInt(Math.imul(low ^ (low >>> 13), 0xc2b2ae35) >>> 0);
  }
}
