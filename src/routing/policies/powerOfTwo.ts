import { ChoiceScratch } from "../choiceScratch.ts";
import type { Choice, ChoiceInput, Policy } from "../policy.ts";

/** Two drawn at random, the one with fewer own requests (Mitzenmacher 2001). A tie goes to the first drawn. */
export class PowerOfTwoPolicy implements Policy {
  readonly name = "power-of-two";
  readonly #choice = new ChoiceScratch();

  choose({ candidates, random }: ChoiceInput): Choice {
    const count = candidates.length;
    const scores = this.#choice.scoresFor(count);
    for (let at = 0; at < count; at++) scores[at] = candidates[at]!.load.requests;
    if (count === 1) return this.#choice.take(0, "only");
    const first = random.below(count);
    // Drawn from the others, so that the two always differ.
    const second = (first + 1 + random.below(count - 1)) % count;
    return this.#choice.take(scores[second]! < scores[first]! ? second : first, "less_loaded");
  }
}
