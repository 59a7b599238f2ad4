/**
 * What a prompt consists of: runs of tokens with an identity each, and no text. Two prompts share a prefix as far as
 * their runs are the same.
 */
export interface Content {
  /** Whole numbers below 2^53. */
  readonly ids: ArrayLike<number>;
  /** Tokens of each run, or of every run. The last run goes on to the end of the prompt. */
  readonly tokens: ArrayLike<number> | number;
}

export interface ChainOptions {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Identity of the run that the answer is. */
  readonly answerId: number;
  readonly blockTokens: number;
  /** What no two prompts may differ in and share blocks: a number for the adapter. */
  readonly root: number;
}

/**
 * Chained 64-bit hash of each full block of prompt and answer. A block takes in the hash of the block before it and, for
 * each run that it touches, the run's identity and where it begins; so two blocks are equal exactly when everything up
 * to their end is.
 */
export function chainHashes(content: Content, options: ChainOptions): BigUint64Array {
  const { blockTokens } = options;
  const blocks = Math.floor((options.promptTokens + options.outputTokens) / blockTokens);
  const hashes = new BigUint64Array(blocks);
  const words = new Uint32Array(hashes.buffer);
  const runs = new Runs(content, options);
  let low = finish(options.root + 1);
  let high = finish(low);
  for (let block = 0; block < blocks; block++) {
    const start = block * blockTokens;
    if (runs.end <= start) runs.next();
    for (;;) {
      low = stir(low ^ high, runs.id % 4294967296);
      high = stir(high ^ low, Math.floor(runs.id / 4294967296) ^ (start - runs.start));
      if (runs.end >= start + blockTokens) break;
      runs.next();
    }
    words[2 * block] = low = finish(low ^ high);
    words[2 * block + 1] = high = finish(high ^ low);
  }
  return hashes;
}

/** The run at hand, from the prompt's first to the answer, which never ends. */
export class Runs {
  id = 0;
  start = 0;
  end = 0;
  readonly #content: Content;
  readonly #promptTokens: number;
  readonly #answerId: number;
  #at = -1;

  constructor(content: Content, { promptTokens, answerId }: Pick<ChainOptions, "promptTokens" | "answerId">) {
    this.#content = content;
    this.#promptTokens = promptTokens;
    this.#answerId = answerId;
    this.next();
  }

  next(): void {
    const { ids, tokens } = this.#content;
    this.#at++;
    this.start = this.end;
    if (this.#at >= ids.length || this.start >= this.#promptTokens) {
      this.id = this.#answerId;
      this.end = Number.POSITIVE_INFINITY;
      return;
    }
    this.id = ids[this.#at]!;
    const ownTokens = typeof tokens === "number" ? tokens : tokens[this.#at]!;
    const isLast = this.#at === ids.length - 1;
    this.end = isLast ? this.#promptTokens : Math.min(this.#promptTokens, this.start + ownTokens);
  }
}

function stir(state: number, value: number): number {
  const mixed = Math.imul(state ^ value, 0xcc9e2d51);
  return (Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593) + 0xe6546b64) | 0;
}

/** Murmur3's finaliser: each bit of the input changes half of those of the output. */
function finish(state: number): number {
  let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
