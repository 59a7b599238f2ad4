import { ChoiceScratch } from "../choiceScratch.ts";
import { readOptions } from "../options.ts";
import type { Values } from "../options.ts";
import { pickLowest } from "../pick.ts";
import type { Choice, ChoiceInput, Policy } from "../policy.ts";

export const PREFIX_SCORER_OPTIONS = {
  queueWeight: { default: 2, min: 0, max: 1000, about: "Weight of the shortest queue." },
  kvWeight: { default: 2, min: 0, max: 1000, about: "Weight of free KV memory." },
  prefixWeight: { default: 3, min: 0, max: 1000, about: "Weight of the cached share of the prompt." },
} as const;

/**
 * The weighted scores of llm-d's inference scheduler (queue, KV utilisation and prefix scorers, then the maximum with
 * equals drawn), each 0..1: the queue between the longest (0) and the shortest (1) of the pool, all 1 where equal; free
 * share of KV memory; share of the prompt that is cached. llm-d reads queue and KV from scrapes 50 ms apart; here the
 * ledger, reconciled with scrapes, says what such a scrape would.
 */
export class PrefixScorerPolicy implements Policy {
  readonly name = "prefix-scorer";
  readonly #weights: Values<typeof PREFIX_SCORER_OPTIONS>;
  readonly #choice = new ChoiceScratch("highest");

  constructor(options: Readonly<Record<string, unknown>> = {}) {
    this.#weights = readOptions("prefix-scorer", PREFIX_SCORER_OPTIONS, options);
  }

  choose({ candidates, request, cachedTokens, nowMs, random }: ChoiceInput): Choice {
    const { queueWeight, kvWeight, prefixWeight } = this.#weights;
    const count = candidates.length;
    let shortest = Number.POSITIVE_INFINITY;
    let longest = Number.NEGATIVE_INFINITY;
    for (let at = 0; at < count; at++) {
      const { waitingSequences } = candidates[at]!.load.at(nowMs);
      shortest = Math.min(shortest, waitingSequences);
      longest = Math.max(longest, waitingSequences);
    }
    const promptTokens = Math.max(1, request.identity.promptTokens);
    const scores = this.#choice.scoresFor(count);
    for (let at = 0; at < count; at++) {
      const replica = candidates[at]!;
      const load = replica.load.at(nowMs);
      const queue = longest > shortest ? (longest - load.waitingSequences) / (longest - shortest) : 1;
      const usedTokens = load.reservedKvTokens - load.remainingOutputTokens;
      const free = Math.max(0, 1 - usedTokens / replica.limits().kvCapacityTokens);
      const cached = Math.min(1, (cachedTokens[at] || 0) / promptTokens);
      // Negated while the lowest is picked.
      scores[at] = -(queueWeight * queue + kvWeight * free + prefixWeight * cached);
    }
    pickLowest(scores, count, 0, random, this.#choice);
    for (let at = 0; at < count; at++) scores[at] = -scores[at]!;
    return this.#choice.named("highest_score");
  }
}
