import { ChoiceScratch } from "../choiceScratch.ts";
import type { Choice, ChoiceInput, Policy } from "../policy.ts";

/** One after the other. Starts at a random one, so that several routers do not all begin at the first. */
export class RoundRobinPolicy implements Policy {
  readonly name = "round-robin";
  readonly #choice = new ChoiceScratch();
  #next = -1;

  choose({ candidates, random }: ChoiceInput): Choice {
    if (this.#next < 0) this.#next = random.below(candidates.length);
    const index = this.#next % candidates.length;
    this.#next = index + 1;
    return this.#choice.take(index, "next");
  }
}
