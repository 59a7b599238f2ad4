import type { Choice } from "./policy.ts";
import type { PriceTable } from "./priceTable.ts";

/** A policy's one `Choice`, overwritten each time. */
export class ChoiceScratch implements Choice {
  index = 0;
  branch = "";
  tied = 1;
  draw = Number.NaN;
  scores: Float64Array | null = null;
  readonly best: "lowest" | "highest";
  readonly prices: PriceTable | null;
  #room = new Float64Array(8);

  constructor(best: "lowest" | "highest" = "lowest", prices: PriceTable | null = null) {
    this.best = best;
    this.prices = prices;
  }

  /** Room for a score per candidate; grows to the largest pool seen. */
  scoresFor(candidates: number): Float64Array {
    if (this.#room.length < candidates) this.#room = new Float64Array(2 * candidates);
    this.scores = this.#room;
    return this.#room;
  }

  /** One candidate without a draw. */
  take(index: number, branch: string): this {
    this.index = index;
    this.branch = branch;
    this.tied = 1;
    this.draw = Number.NaN;
    return this;
  }

  named(branch: string): this {
    this.branch = branch;
    return this;
  }
}
