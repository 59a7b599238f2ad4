import type { PricedReplica } from "../pricedReplica.ts";
import type { PriceSettings } from "../priceSettings.ts";
import { COLUMN, LEARNED, NOT_APPLICABLE, PRIOR, TERMS } from "../terms/term.ts";
import { DecodeLegs, PrefillLegs } from "./legPricer.ts";
import type { PairInput, PricedLink } from "./pairInput.ts";
import { PairSearch } from "./pairSearch.ts";

const WIDTH = TERMS.length;

/** A pair and its price. Belongs to the chooser and is valid until it chooses again: a `Decision` copies it. */
export interface PricedPair {
  readonly prefillAt: number;
  readonly decodeAt: number;
  readonly prefill: PricedReplica;
  readonly decode: PricedReplica;
  readonly link: PricedLink;
  /** Leading prompt tokens cached on each side. */
  readonly prefillCachedTokens: number;
  readonly decodeCachedTokens: number;
  readonly transferBytes: number;
  /** From now until the prompt is computed and its KV can leave. */
  readonly readyMs: number;
  /** Unweighted, in the order of `TERMS`; of both legs together. */
  readonly terms: Float64Array;
  readonly bases: Uint8Array;
  readonly weights: Float64Array;
  readonly totalMs: number;
  /** Pairs that were priced to find it. */
  readonly looked: number;
}

/**
 * The cheapest pair of a prefill and a decode replica. Prices each leg once and each pair that matters by what joins its
 * legs: the link with what is on it, and what is left of the decode side's queue when the KV arrives.
 */
export class PairChooser {
  readonly #settings: PriceSettings;
  readonly #weights: Float64Array;
  readonly #prefills = new PrefillLegs();
  readonly #decodes = new DecodeLegs();
  readonly #search = new PairSearch();
  readonly #terms = new Float64Array(WIDTH);
  readonly #bases = new Uint8Array(WIDTH);
  #leastDecodeMs = new Float64Array(8);
  #input: PairInput | null = null;
  readonly #pairMs = (prefillAt: number, decodeAt: number): number => this.#price(prefillAt, decodeAt, false);

  constructor(settings: PriceSettings) {
    this.#settings = settings;
    this.#weights = Float64Array.from(TERMS, (term) => settings.weights[term]);
  }

  /**
   * @param ceilingMs the price of the best placement without a split; a pair that cannot beat it by more than the slack of
   * the search need not be the best one
   * @returns null where a side has no candidates
   */
  choose(input: PairInput, ceilingMs: number): PricedPair | null {
    const counts = { prefill: input.prefill.candidates.length, decode: input.decode.candidates.length };
    if (counts.prefill === 0 || counts.decode === 0) return null;
    this.#input = input;
    this.#prefills.price(input, this.#settings, this.#weights);
    this.#decodes.price(input, this.#settings, this.#weights);
    this.#addLeastTransfer(input);
    const costs = { prefillMs: this.#prefills.table.totals, decodeMs: this.#leastDecodeMs, pairMs: this.#pairMs };
    const { prefillAt, decodeAt, priced } = this.#search.search(costs, counts, ceilingMs, input.random.next());
    return this.#taken(input, prefillAt, decodeAt, priced);
  }

  #addLeastTransfer({ decode, leastTransferMs }: PairInput): void {
    const { totals } = this.#decodes.table;
    const { bytes } = this.#decodes;
    const count = decode.candidates.length;
    if (this.#leastDecodeMs.length < count) this.#leastDecodeMs = new Float64Array(2 * count);
    const weight = this.#weights[COLUMN.transfer]!;
    for (let at = 0; at < count; at++) this.#leastDecodeMs[at] = totals[at]! + weight * leastTransferMs(bytes[at]!);
  }

  /** @param record also writes down the terms that depend on both */
  #price(prefillAt: number, decodeAt: number, record: boolean): number {
    const { link, nowMs, classTargets, request } = this.#input!;
    const weights = this.#weights;
    const readyMs = this.#prefills.readyMs[prefillAt]!;
    const transfer = link(prefillAt, decodeAt).transferMs(this.#decodes.bytes[decodeAt]!, nowMs + readyMs, nowMs);
    const arrivalMs = readyMs + transfer;
    const wait = Math.max(this.#decodes.joinMs[decodeAt]!, this.#decodes.freeMs[decodeAt]! - arrivalMs);
    const firstTokenMs = arrivalMs + wait + this.#decodes.firstStepMs[decodeAt]!;
    const lateness =
      classTargets === null
        ? 0
        : classTargets.weight *
          Math.max(0, Math.max(0, nowMs - request.arrivedMs) + firstTokenMs - classTargets.ttftTargetMs);
    if (record) {
      this.#terms[COLUMN.queue]! += wait;
      this.#terms[COLUMN.transfer] = transfer;
      this.#terms[COLUMN.lateness]! += lateness;
    }
    const total =
      this.#prefills.table.totals[prefillAt]! +
      this.#decodes.table.totals[decodeAt]! +
      weights[COLUMN.transfer]! * transfer +
      weights[COLUMN.queue]! * wait +
      weights[COLUMN.lateness]! * lateness;
    return Number.isFinite(total) ? total : Number.POSITIVE_INFINITY;
  }

  #taken(input: PairInput, prefillAt: number, decodeAt: number, looked: number): PricedPair {
    const { table: prefills } = this.#prefills;
    const { table: decodes } = this.#decodes;
    const link = input.link(prefillAt, decodeAt);
    for (let column = 0; column < WIDTH; column++) {
      const p = prefillAt * WIDTH + column;
      const d = decodeAt * WIDTH + column;
      const own = column === COLUMN.queue ? 0 : decodes.terms[d]!;
      this.#terms[column] = prefills.terms[p]! + own;
      this.#bases[column] = worse(prefills.bases[p]!, decodes.bases[d]!);
    }
    this.#bases[COLUMN.transfer] = link.learned ? LEARNED : PRIOR;
    if (input.classTargets !== null) this.#bases[COLUMN.lateness] = this.#bases[COLUMN.queue]!;
    const totalMs = this.#price(prefillAt, decodeAt, true);
    return {
      prefillAt,
      decodeAt,
      prefill: input.prefill.candidates[prefillAt]!,
      decode: input.decode.candidates[decodeAt]!,
      link,
      prefillCachedTokens: input.prefill.cachedTokens[prefillAt] ?? 0,
      decodeCachedTokens: input.decode.cachedTokens[decodeAt] ?? 0,
      transferBytes: this.#decodes.bytes[decodeAt]!,
      readyMs: this.#prefills.readyMs[prefillAt]!,
      terms: this.#terms,
      bases: this.#bases,
      weights: this.#weights,
      totalMs,
      looked,
    };
  }
}

/** The worse of two bases; what is not applicable on one side says nothing. */
function worse(a: number, b: number): number {
  if (a === NOT_APPLICABLE) return b;
  return b === NOT_APPLICABLE ? a : Math.max(a, b);
}
