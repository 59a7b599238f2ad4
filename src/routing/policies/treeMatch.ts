import { ChoiceScratch } from "../choiceScratch.ts";
import { readOptions } from "../options.ts";
import type { Values } from "../options.ts";
import { pickLowest } from "../pick.ts";
import type { Choice, ChoiceInput, Policy } from "../policy.ts";

export const TREE_MATCH_OPTIONS = {
  cacheThreshold: {
    default: 0.3,
    min: 0,
    max: 1,
    about: "Matched share of the prompt above which the best match is taken.",
  },
  balanceAbsThreshold: {
    default: 64,
    min: 0,
    max: 1_000_000,
    about: "Difference of most and least requests above which the pool may count as imbalanced.",
  },
  balanceRelThreshold: {
    default: 1.5,
    min: 1,
    max: 1_000_000,
    about: "Ratio of most and least requests above which it may; both have to be passed.",
  },
} as const;

/**
 * SGLang's router (`cache_aware`, defaults of 0.3.2; earlier releases had 0.5, 32 and 1.0001): while the pool is
 * imbalanced, the shortest queue whatever is cached; else the best match if it is good enough, else the replica that
 * least is known to be cached on.
 */
export class TreeMatchPolicy implements Policy {
  readonly name = "tree-match";
  readonly #options: Values<typeof TREE_MATCH_OPTIONS>;
  readonly #choice = new ChoiceScratch();

  constructor(options: Readonly<Record<string, unknown>> = {}) {
    this.#options = readOptions("tree-match", TREE_MATCH_OPTIONS, options);
  }

  choose(input: ChoiceInput): Choice {
    const { candidates, cachedTokens, heldTokens, request, random } = input;
    const { cacheThreshold, balanceAbsThreshold, balanceRelThreshold } = this.#options;
    const count = candidates.length;
    const scores = this.#choice.scoresFor(count);
    let least = Number.POSITIVE_INFINITY;
    let most = 0;
    let matched = 0;
    for (let at = 0; at < count; at++) {
      const { requests } = candidates[at]!.load;
      scores[at] = requests;
      least = Math.min(least, requests);
      most = Math.max(most, requests);
      matched = Math.max(matched, cachedTokens[at] || 0);
    }
    const imbalanced = most - least > balanceAbsThreshold && most > least * balanceRelThreshold;
    if (imbalanced) return this.#lowest(count, "shortest_queue", input);

    const promptTokens = Math.max(1, request.identity.promptTokens);
    if (matched / promptTokens > cacheThreshold) {
      for (let at = 0; at < count; at++) scores[at] = promptTokens - (cachedTokens[at] || 0);
      return this.#lowest(count, "best_match", input);
    }
    // Without an index the queue is the next best sign of room.
    if (heldTokens !== null) for (let at = 0; at < count; at++) scores[at] = heldTokens[at]!;
    pickLowest(scores, count, 0, random, this.#choice);
    return this.#choice.named("smallest_tree");
  }

  #lowest(count: number, branch: string, { random }: ChoiceInput): Choice {
    pickLowest(this.#choice.scores!, count, 0, random, this.#choice);
    return this.#choice.named(branch);
  }
}
