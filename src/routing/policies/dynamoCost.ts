import { ChoiceScratch } from "../choiceScratch.ts";
import { readOptions } from "../options.ts";
import type { Values } from "../options.ts";
import { pickLowest } from "../pick.ts";
import type { Choice, ChoiceInput, Policy } from "../policy.ts";

export const DYNAMO_COST_OPTIONS = {
  overlapWeight: { default: 1, min: 0, max: 1000, about: "Weight of the prefill blocks against the decode blocks." },
  temperature: { default: 0, min: 0, max: 1000, about: "Of the softmax over costs; 0 takes the lowest." },
} as const;

/**
 * Dynamo's KV router: `overlapWeight × prefill blocks + decode blocks`, both as they would be with this request there.
 * Prefill counts the uncached tokens of this prompt and of those still to be computed there; decode counts the blocks of
 * every context there. At temperature 0 the lowest wins, among equals the one with the smallest tree and then any; above
 * it a softmax over the costs, scaled to the pool's range, is drawn from.
 */
export class DynamoCostPolicy implements Policy {
  readonly name = "dynamo-cost";
  readonly #options: Values<typeof DYNAMO_COST_OPTIONS>;
  readonly #choice = new ChoiceScratch();
  #smallest = new Float64Array(8);

  constructor(options: Readonly<Record<string, unknown>> = {}) {
    this.#options = readOptions("dynamo-cost", DYNAMO_COST_OPTIONS, options);
  }

  choose(input: ChoiceInput): Choice {
    const { candidates, cachedTokens, request, nowMs } = input;
    const { overlapWeight, temperature } = this.#options;
    const count = candidates.length;
    const promptTokens = Math.max(1, request.identity.promptTokens);
    const scores = this.#choice.scoresFor(count);
    for (let at = 0; at < count; at++) {
      const replica = candidates[at]!;
      const load = replica.load.at(nowMs);
      const block = replica.limits().kvBlockTokens;
      const uncachedTokens = Math.max(0, promptTokens - (cachedTokens[at] || 0));
      const prefillBlocks = (load.pendingPrefillTokens + uncachedTokens) / block;
      const contextTokens = load.reservedKvTokens - load.remainingOutputTokens + promptTokens;
      scores[at] = overlapWeight * prefillBlocks + Math.ceil(contextTokens / block);
    }
    return temperature > 0 ? this.#draw(scores, count, temperature, input) : this.#lowest(scores, count, input);
  }

  #lowest(scores: Float64Array, count: number, { heldTokens, random }: ChoiceInput): Choice {
    let lowest = Number.POSITIVE_INFINITY;
    for (let at = 0; at < count; at++) if (scores[at]! < lowest) lowest = scores[at]!;
    if (this.#smallest.length < count) this.#smallest = new Float64Array(2 * count);
    for (let at = 0; at < count; at++)
      this.#smallest[at] = scores[at] === lowest ? (heldTokens?.[at] ?? 0) : Number.POSITIVE_INFINITY;
    pickLowest(this.#smallest, count, 0, random, this.#choice);
    return this.#choice.named("lowest");
  }

  #draw(scores: Float64Array, count: number, temperature: number, { random }: ChoiceInput): Choice {
    let lowest = Number.POSITIVE_INFINITY;
    let highest = Number.NEGATIVE_INFINITY;
    for (let at = 0; at < count; at++) {
      if (scores[at]! < lowest) lowest = scores[at]!;
      if (scores[at]! > highest) highest = scores[at]!;
    }
    const spread = highest > lowest ? (highest - lowest) * temperature : 1;
    let sum = 0;
    for (let at = 0; at < count; at++) sum += likelihood(scores[at]!, lowest, spread);
    const draw = random.next();
    let left = draw * sum;
    let index = count - 1;
    for (let at = 0; at < count; at++) {
      left -= likelihood(scores[at]!, lowest, spread);
      if (left >= 0) continue;
      index = at;
      break;
    }
    this.#choice.take(index, "sampled").draw = draw;
    return this.#choice;
  }
}

/** Unnormalised; a cost that is no number is never drawn. */
function likelihood(score: number, lowest: number, spread: number): number {
  return Number.isNaN(score) ? 0 : Math.exp((lowest - score) / spread);
}
