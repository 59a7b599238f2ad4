import { ChoiceScratch } from "../choiceScratch.ts";
import { pickLowest } from "../pick.ts";
import type { Choice, ChoiceInput, Policy } from "../policy.ts";

/** Fewest own requests under way, as nginx and HAProxy count them: one is one, whatever its size. */
export class LeastConnectionsPolicy implements Policy {
  readonly name = "least-connections";
  readonly #choice = new ChoiceScratch();

  choose({ candidates, random }: ChoiceInput): Choice {
    const scores = this.#choice.scoresFor(candidates.length);
    for (let at = 0; at < candidates.length; at++) scores[at] = candidates[at]!.load.requests;
    pickLowest(scores, candidates.length, 0, random, this.#choice);
    return this.#choice.named("fewest");
  }
}
