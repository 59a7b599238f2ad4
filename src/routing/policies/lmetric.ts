import { ChoiceScratch } from "../choiceScratch.ts";
import { readOptions } from "../options.ts";
import { pickLowest } from "../pick.ts";
import type { Choice, ChoiceInput, Policy } from "../policy.ts";

export const LMETRIC_OPTIONS = {
  queuedPrefill: {
    default: 1,
    min: 0,
    max: 1,
    integer: true,
    about: "1: prompt tokens that wait on the replica count too; 0: only this prompt's.",
  },
} as const;

/**
 * LMetric (arXiv 2603.15202): tokens to compute if the request went there × requests there, this one included; the
 * lowest product wins. The product needs no weight between the two, because any factor cancels in the comparison.
 */
export class LMetricPolicy implements Policy {
  readonly name = "lmetric";
  readonly #queuedPrefill: number;
  readonly #choice = new ChoiceScratch();

  constructor(options: Readonly<Record<string, unknown>> = {}) {
    this.#queuedPrefill = readOptions("lmetric", LMETRIC_OPTIONS, options).queuedPrefill;
  }

  choose({ candidates, cachedTokens, request, nowMs, random }: ChoiceInput): Choice {
    const count = candidates.length;
    const promptTokens = Math.max(1, request.identity.promptTokens);
    const scores = this.#choice.scoresFor(count);
    for (let at = 0; at < count; at++) {
      const load = candidates[at]!.load.at(nowMs);
      // The last token is always computed; without it a full hit would make the load count for nothing.
      const uncachedTokens = Math.max(1, promptTokens - (cachedTokens[at] || 0));
      const tokens = uncachedTokens + this.#queuedPrefill * load.pendingPrefillTokens;
      scores[at] = tokens * (load.sequences + request.sequences);
    }
    pickLowest(scores, count, 0, random, this.#choice);
    return this.#choice.named("lowest_product");
  }
}
