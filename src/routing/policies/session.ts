import { BoundedAffinity, leastLoaded } from "../boundedAffinity.ts";
import { ChoiceScratch } from "../choiceScratch.ts";
import { readOptions } from "../options.ts";
import type { Choice, ChoiceInput, Policy } from "../policy.ts";
import { hashText } from "../rendezvous.ts";

export const SESSION_OPTIONS = {
  loadFactor: {
    default: 1.5,
    min: 1,
    max: 1000,
    about: "How many times the average load a session's own replica may have before the session moves over.",
  },
} as const;

/** A session stays on its replica; without a session the least loaded one is taken. */
export class SessionPolicy implements Policy {
  readonly name = "session";
  readonly #affinity: BoundedAffinity;
  readonly #choice = new ChoiceScratch("highest");

  constructor(options: Readonly<Record<string, unknown>> = {}) {
    this.#affinity = new BoundedAffinity(readOptions("session", SESSION_OPTIONS, options).loadFactor);
  }

  choose(input: ChoiceInput): Choice {
    const { session } = input.request;
    if (session === null) return leastLoaded(input, "no_session", this.#choice);
    return this.#affinity.choose(hashText(session), input, this.#choice);
  }
}
