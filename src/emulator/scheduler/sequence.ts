/** What a caller asks the engine to run: one prompt, one output. A request with `n` choices is `n` sequences. */
export interface SequenceSpec<Owner> {
  /** At least 1. */
  readonly promptTokens: number;
  /** Exactly so many are generated; 0 for embeddings and the like, which end with their prompt. */
  readonly outputTokens: number;
  /**
   * Chained hash of each full block of `blockTokens`, prompt first. It may go on over the output where that is known in
   * advance, so that the next turn of a conversation finds it; blocks past its end are never shared.
   */
  readonly hashes: BigUint64Array;
  readonly adapter: string | null;
  /** Lower runs first, under the priority policy only. */
  readonly priority: number;
  /** False: the prompt is computed whole (a request for prompt log-probabilities). */
  readonly readsCache: boolean;
  /** Whatever the caller wants to find again in a step's outcome. */
  readonly owner: Owner;
}

export type SequenceState = "waiting" | "running" | "finished" | "aborted";

/** One sequence on its way through an engine. Only the scheduler writes to it. Times are the caller's virtual time. */
export class Sequence<Owner> {
  readonly owner: Owner;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly adapter: string | null;
  readonly priority: number;
  readonly readsCache: boolean;
  readonly arrivedMs: number;
  /** Order of submission; breaks ties of priority. */
  readonly number: number;
  readonly hashes: BigUint64Array;
  /** The same memory: low and high word of each hash, alternating. */
  readonly hashWords: Uint32Array;

  state: SequenceState = "waiting";
  /** Null until it first gets into a batch. */
  firstScheduledMs: number | null = null;
  firstTokenMs: number | null = null;
  lastTokenMs = 0;
  /** Between its last two tokens; 0 before the second. */
  lastGapMs = 0;
  finishedMs: number | null = null;
  /** Prompt tokens found in the prefix cache when it was first scheduled. */
  cachedTokens = 0;
  /** Tokens whose KV is held. */
  computedTokens = 0;
  generatedTokens = 0;
  preemptions = 0;

  blocks: Int32Array;
  blockCount = 0;
  /** Blocks that were copied from the host when it was last let in. */
  restoredBlocks = 0;
  /** Leading blocks that have been offered to the prefix cache. */
  publishedBlocks = 0;

  /** Neighbours in the waiting queue. */
  before: Sequence<Owner> | null = null;
  after: Sequence<Owner> | null = null;

  constructor(spec: SequenceSpec<Owner>, number: number, arrivedMs: number, blockTokens: number) {
    this.owner = spec.owner;
    this.promptTokens = spec.promptTokens;
    this.outputTokens = spec.outputTokens;
    this.adapter = spec.adapter;
    this.priority = spec.priority;
    this.readsCache = spec.readsCache;
    this.number = number;
    this.arrivedMs = arrivedMs;
    this.hashes = spec.hashes;
    this.hashWords = new Uint32Array(spec.hashes.buffer, spec.hashes.byteOffset, spec.hashes.length * 2);
    this.blocks = new Int32Array(Math.ceil((spec.promptTokens + 1) / blockTokens));
  }

  get ended(): boolean {
    return this.state === "finished" || this.state === "aborted";
  }

  addBlock(block: number): void {
    if (this.blockCount === this.blocks.length) {
      const grown = new Int32Array(this.blocks.length * 2);
      grown.set(this.blocks);
      this.blocks = grown;
    }
    this.blocks[this.blockCount++] = block;
  }
}

/** Tokens whose KV a sequence lacks before its next token can be sampled: 1 while it decodes. */
export function missingTokens<Owner>(sequence: Sequence<Owner>): number {
  return sequence.promptTokens + sequence.generatedTokens - sequence.computedTokens;
}

export function decodes<Owner>(sequence: Sequence<Owner>): boolean {
  return sequence.generatedTokens > 0 && missingTokens(sequence) === 1;
}
