import { ChoiceScratch } from "../choiceScratch.ts";
import { readOptions } from "../options.ts";
import { pickLowest } from "../pick.ts";
import type { Choice, ChoiceInput, Policy } from "../policy.ts";
import { Pricer } from "../price.ts";
import { DEFAULT_PRICE_SETTINGS } from "../priceSettings.ts";
import type { PriceSettings } from "../priceSettings.ts";
import { PriceTable } from "../priceTable.ts";
import { TERMS } from "../terms/term.ts";
import type { TermName } from "../terms/term.ts";

const { weights: WEIGHTS, ...REST } = DEFAULT_PRICE_SETTINGS;

function weight(term: TermName) {
  return { default: WEIGHTS[term], min: 0, max: 1000, about: `What a millisecond of ${term} counts for.` };
}

/** Derivations of the defaults are in docs/price.md. */
export const KVASIR_OPTIONS = {
  queueWeight: weight("queue"),
  prefillWeight: weight("prefill"),
  restoreWeight: weight("restore"),
  transferWeight: weight("transfer"),
  adapterWeight: weight("adapter"),
  decodeWeight: weight("decode"),
  interferenceWeight: weight("interference"),
  evictionWeight: weight("eviction"),
  preemptionWeight: weight("preemption"),
  latenessWeight: weight("lateness"),
  stepTokenBudget: {
    default: REST.stepTokenBudget,
    min: 16,
    max: 1_000_000,
    integer: true,
    about: "Tokens that an engine computes in one step at most.",
  },
  adapterLoadMs: {
    default: REST.adapterLoadMs,
    min: 0,
    max: 600_000,
    about: "Time to bring a LoRA adapter into GPU memory.",
  },
  adapterReuse: {
    default: REST.adapterReuse,
    min: 0,
    max: 1,
    about: "Chance that an evicted adapter is wanted again.",
  },
  hostRestoreMsPerKtok: {
    default: REST.hostRestoreMsPerKtok,
    min: 0,
    max: 10_000,
    about: "Time to bring 1,000 tokens of KV from host memory to the GPU.",
  },
  diskRestoreMsPerKtok: {
    default: REST.diskRestoreMsPerKtok,
    min: 0,
    max: 100_000,
    about: "Time to bring 1,000 tokens of KV from disk to the GPU.",
  },
  assumedHitShare: {
    default: REST.assumedHitShare,
    min: 0,
    max: 1,
    about: "Share of prompt tokens found cached, where the engine does not tell.",
  },
  coldEndShare: {
    default: REST.coldEndShare,
    min: 0,
    max: 1,
    about: "Reuse of the blocks that leave a cache first, relative to the average block.",
  },
  staleAfterMs: {
    default: REST.staleAfterMs,
    min: 100,
    max: 3_600_000,
    about: "Age at which scraped metrics count as stale.",
  },
  tieMs: { default: REST.tieMs, min: 0, max: 1000, about: "Prices closer than this are equal, and one is drawn." },
} as const;

/** The smallest predicted sum of own delay and delay to others wins. */
export class KvasirPolicy implements Policy {
  readonly name = "kvasir";
  readonly bindsLate = true;
  readonly #pricer: Pricer;
  readonly #table = new PriceTable();
  readonly #choice = new ChoiceScratch("lowest", this.#table);

  constructor(options: Readonly<Record<string, unknown>> = {}) {
    this.#pricer = new Pricer(priceSettings(options));
  }

  get priceSettings(): PriceSettings {
    return this.#pricer.settings;
  }

  choose(input: ChoiceInput): Choice {
    const count = input.candidates.length;
    this.#pricer.price(input, this.#table);
    const { totals } = this.#table;
    pickLowest(totals, count, this.#pricer.settings.tieMs, input.random, this.#choice);
    return this.#choice.named(totals[this.#choice.index]! < Number.POSITIVE_INFINITY ? "cheapest" : "unpriced");
  }
}

/** The settings of the price from the flat options of the configuration. */
export function priceSettings(options: Readonly<Record<string, unknown>> = {}): PriceSettings {
  const values = readOptions("kvasir", KVASIR_OPTIONS, options);
  const weights = Object.fromEntries(TERMS.map((term) => [term, values[`${term}Weight`]])) as Record<TermName, number>;
  return { ...values, weights };
}
