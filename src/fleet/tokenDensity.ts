/** English through a current tokenizer, the JSON framing of a chat included. */
const ASSUMED_BYTES_PER_TOKEN = 4;
/** No text tokenizes beyond this range; an answer that says so counted something else (images, audio). */
const LEAST_BYTES_PER_TOKEN = 0.5;
const MOST_BYTES_PER_TOKEN = 64;
/** Weight of one answer of this many tokens or more; shorter prompts are mostly framing and count for less. */
const FULL_WEIGHT = 0.02;
const FULL_WEIGHT_TOKENS = 500;

/** Bytes of prompt text per token, learned per model from the usage that answers report. Bounded: LRU. */
export class TokenDensity {
  readonly #maxModels: number;
  readonly #byModel = new Map<string, { bytesPerToken: number; answers: number }>();

  constructor(maxModels = 1_000) {
    this.#maxModels = maxModels;
  }

  get size(): number {
    return this.#byModel.size;
  }

  bytesPerToken(model: string): number {
    return this.#byModel.get(model)?.bytesPerToken ?? ASSUMED_BYTES_PER_TOKEN;
  }

  observe(model: string, promptBytes: number, promptTokens: number): void {
    const seen = promptBytes / promptTokens;
    if (!(seen >= LEAST_BYTES_PER_TOKEN && seen <= MOST_BYTES_PER_TOKEN)) return;
    const known = this.#byModel.get(model);
    if (known !== undefined) this.#byModel.delete(model);
    else if (this.#byModel.size >= this.#maxModels) this.#byModel.delete(this.#byModel.keys().next().value ?? "");
    const density = known ?? { bytesPerToken: ASSUMED_BYTES_PER_TOKEN, answers: 0 };
    density.answers++;
    const weight = Math.max(FULL_WEIGHT, 1 / (density.answers + 1)) * Math.min(1, promptTokens / FULL_WEIGHT_TOKENS);
    density.bytesPerToken += weight * (seen - density.bytesPerToken);
    this.#byModel.set(model, density);
  }
}
