import { BoundedAffinity, leastLoaded } from "../boundedAffinity.ts";
import { ChoiceScratch } from "../choiceScratch.ts";
import { readOptions } from "../options.ts";
import type { Choice, ChoiceInput, Policy } from "../policy.ts";
import { hash64 } from "../rendezvous.ts";

export const PREFIX_HASH_OPTIONS = {
  prefixTokens: {
    default: 256,
    min: 1,
    max: 1_000_000,
    integer: true,
    about: "Leading prompt tokens that are hashed, rounded down to whole blocks but at least one.",
  },
  loadFactor: {
    default: 1.25,
    min: 1,
    max: 1000,
    about: "How many times the average load a prefix's own replica may have before requests move over.",
  },
} as const;

/** Equal beginnings go to one replica, within bounds; a prompt that cannot be hashed goes to the least loaded. */
export class PrefixHashPolicy implements Policy {
  readonly name = "prefix-hash";
  readonly #prefixTokens: number;
  readonly #affinity: BoundedAffinity;
  readonly #choice = new ChoiceScratch("highest");

  constructor(options: Readonly<Record<string, unknown>> = {}) {
    const { prefixTokens, loadFactor } = readOptions("prefix-hash", PREFIX_HASH_OPTIONS, options);
    this.#prefixTokens = prefixTokens;
    this.#affinity = new BoundedAffinity(loadFactor);
  }

  choose(input: ChoiceInput): Choice {
    const { hashes, blockTokens } = input.request.identity;
    if (hashes.length === 0) return leastLoaded(input, "unhashable", this.#choice);
    const blocks = Math.max(1, Math.min(hashes.length, Math.floor(this.#prefixTokens / blockTokens) || 1));
    return this.#affinity.choose(hash64(hashes[blocks - 1]!), input, this.#choice);
  }
}
