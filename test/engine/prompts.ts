import { SeededRandom } from "#src/determinism/random.ts";
import type { Kind } from "./truth.ts";
import { post } from "./routerSetup.ts";

/** Below every special token of the tokenizers in use. */
const PLAIN_IDS = 100_000;

/** Prompts as token ids. */
export class TokenPrompts {
  readonly #random: SeededRandom;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
  }

  below(bound: number): number {
    return this.#random.below(bound);
  }

  ids(count: number): number[] {
    return Array.from({ length: count }, () => this.#random.below(PLAIN_IDS));
  }
}

export interface Completion {
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
}

/** Completes token ids, without sampling noise; adapters are asked for by name. */
export function complete(url: string, ids: readonly number[], kind: Kind = {}, maxTokens = 1): Promise<Completion> {
  return post<Completion>(`${url}/v1/completions`, {
    model: kind.adapter ?? "target",
    prompt: ids,
    max_tokens: maxTokens,
    temperature: 0,
    ignore_eos: true,
    ...(kind.salt === undefined ? {} : { cache_salt: kind.salt }),
  });
}
