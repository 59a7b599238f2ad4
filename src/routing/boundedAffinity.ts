import type { ChoiceScratch } from "./choiceScratch.ts";
import { pickLowest } from "./pick.ts";
import type { Choice, ChoiceInput } from "./policy.ts";
import { Rendezvous } from "./rendezvous.ts";

/**
 * Keeps a key on its own replica while that has at most `loadFactor` times the average load, this request counted
 * (consistent hashing with bounded loads, Mirrokni, Thorup and Zadimoghaddam 2018); past that the key goes to the next
 * one in its own order, so that the overflow of one replica spreads over all.
 */
export class BoundedAffinity {
  readonly #loadFactor: number;
  readonly #rendezvous = new Rendezvous();

  constructor(loadFactor: number) {
    this.#loadFactor = loadFactor;
  }

  choose(keyHash: number, { candidates }: ChoiceInput, choice: ChoiceScratch): Choice {
    const count = candidates.length;
    let requests = 0;
    for (let at = 0; at < count; at++) requests += candidates[at]!.load.requests || 0;
    const most = Math.ceil((this.#loadFactor * (requests + 1)) / count);
    const scores = choice.scoresFor(count);
    let own = 0;
    let best = -1;
    for (let at = 0; at < count; at++) {
      const replica = candidates[at]!;
      const weight = this.#rendezvous.weight(keyHash, replica);
      scores[at] = weight;
      if (weight > scores[own]!) own = at;
      if ((replica.load.requests || 0) + 1 <= most && (best < 0 || weight > scores[best]!)) best = at;
    }
    return best < 0 || best === own ? choice.take(own, "own") : choice.take(best, "overflow");
  }
}

/** For a request without a key: fewest own requests. */
export function leastLoaded({ candidates, random }: ChoiceInput, branch: string, choice: ChoiceScratch): Choice {
  const scores = choice.scoresFor(candidates.length);
  for (let at = 0; at < candidates.length; at++) scores[at] = candidates[at]!.load.requests;
  pickLowest(scores, candidates.length, 0, random, choice);
  // Affinity's scores are best when highest.
  for (let at = 0; at < candidates.length; at++) scores[at] = -scores[at]!;
  return choice.named(branch);
}
