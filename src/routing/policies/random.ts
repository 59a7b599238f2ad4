import { ChoiceScratch } from "../choiceScratch.ts";
import type { Choice, ChoiceInput, Policy } from "../policy.ts";

/** Any candidate, each as likely. */
export class RandomPolicy implements Policy {
  readonly name = "random";
  readonly #choice = new ChoiceScratch();

  choose({ candidates, random }: ChoiceInput): Choice {
    return this.#choice.take(random.below(candidates.length), "drawn");
  }
}
