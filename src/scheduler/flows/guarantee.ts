/** Of the last request in the mean of all. */
const MEAN_SHARE = 0.1;

/**
 * The share of tokens that a class gets while it waits, whatever higher classes want: a token bucket that others' tokens
 * fill and own ones empty. It holds one request at most, so that nothing is saved up, and owes one at most, so that what
 * was spare is not held against it.
 *
 * Thus a class waits at most until others have got `(mean + greatest own request) / share` tokens.
 */
export class Guarantee {
  /** 0: higher classes may make it wait for ever. */
  share: number;
  #level = 0;
  #meanTokens = 0;
  #served = false;
  #lastTokens = 0;

  constructor(share: number) {
    this.share = share;
  }

  /** It waits and has got so little that it goes before higher classes. */
  get due(): boolean {
    return this.#level > 0 && this.#level >= this.#meanTokens;
  }

  /** One more waits: before any was served, the mean is that of the first, so that who comes changes no claim. */
  asked(tokens: number): void {
    if (!this.#served && this.#meanTokens === 0) this.#meanTokens = tokens;
  }

  /** Nobody waits any more: a claim ends. */
  idle(): void {
    this.#level = Math.min(0, this.#level);
    if (!this.#served) this.#meanTokens = 0;
  }

  /** While it waits, others got `tokens`. */
  othersGot(tokens: number): void {
    this.#level = Math.min(this.#meanTokens, this.#level + this.share * tokens);
  }

  got(tokens: number): void {
    this.#meanTokens = this.#served ? this.#meanTokens + MEAN_SHARE * (tokens - this.#meanTokens) : tokens;
    this.#served = true;
    this.#lastTokens = tokens;
    const owed = Math.max(this.#meanTokens, this.#lastTokens);
    this.#level = Math.min(this.#meanTokens, Math.max(-owed, this.#level - (1 - this.share) * tokens));
  }
}
