import type { Choice, ChoiceInput } from "./policy.ts";
import type { PriceTable } from "./priceTable.ts";
import type { PricedPair } from "./pairs/pairChooser.ts";
import { BASES, COLUMN, TERMS } from "./terms/term.ts";
import type { BasisName, TermName } from "./terms/term.ts";

/** Figures of a candidate that every policy has; a total and the terms follow where there are prices. */
const CACHED = 0;
const FACTS_AGE = 1;
const SCORE = 2;
const UNPRICED_WIDTH = 3;
const TOTAL = 3;
const FIRST_TERM = 4;
const PRICED_WIDTH = FIRST_TERM + TERMS.length;

export interface DecisionParts {
  readonly id: string;
  readonly requestId: string;
  readonly model: string;
  readonly policy: string;
  readonly input: ChoiceInput;
  readonly choice: Choice;
  /** The cheapest pair, if there is one; the last row. */
  readonly pair?: PricedPair | null;
  /** The pair was chosen. */
  readonly takesPair?: boolean;
  /** How the candidates came about, e.g. `normal`, `last_resort`. */
  readonly eligibility: string;
  readonly ineligible: readonly { readonly replicaId: string; readonly reason: string }[];
  /** 1 is the first. */
  readonly attempt: number;
}

/** What a row that is a pair says beyond its price, its replica being the decode side. */
export interface DecidedPair {
  readonly row: number;
  readonly prefillId: string;
  readonly prefillIncarnation: number;
  readonly decodeCachedTokens: number;
  /** The closest thing that both sides share, e.g. `rack`. */
  readonly link: string;
  readonly transferBytes: number;
  /** Pairs that were priced to find it. */
  readonly looked: number;
}

/**
 * All that a choice rested on, copied once into one buffer (single precision: seven digits of a millisecond are
 * plenty), with no reference to replicas, so that a long log of decisions stays small. Words are made when asked for.
 */
export class Decision {
  readonly id: string;
  readonly requestId: string;
  readonly model: string;
  readonly policy: string;
  readonly branch: string;
  readonly eligibility: string;
  readonly ineligible: readonly { readonly replicaId: string; readonly reason: string }[];
  readonly attempt: number;
  /** On the scheduler's clock. */
  readonly atMs: number;
  readonly promptTokens: number;
  readonly expectedOutputTokens: number;
  /** Row of the chosen candidate; the choice's own, or that of the pair. */
  readonly chosen: number;
  readonly tied: number;
  readonly draw: number;
  readonly best: "lowest" | "highest";
  readonly priced: boolean;
  /** What each term counted for in the totals, in the order of `TERMS`. */
  readonly weights: Float64Array | null;
  readonly replicaIds: readonly string[];
  /** Null: no pair was to be had. */
  readonly pair: DecidedPair | null;
  readonly #incarnations: Float64Array;
  readonly #figures: Float32Array;
  readonly #bases: Uint8Array;
  readonly #width: number;

  constructor(parts: DecisionParts) {
    const { input, choice, pair = null } = parts;
    const { candidates, nowMs } = input;
    const { prices, scores } = choice;
    this.id = parts.id;
    this.requestId = parts.requestId;
    this.model = parts.model;
    this.policy = parts.policy;
    this.branch = parts.takesPair === true ? "pair" : choice.branch;
    this.eligibility = parts.eligibility;
    this.ineligible = parts.ineligible;
    this.attempt = parts.attempt;
    this.atMs = nowMs;
    this.promptTokens = Math.round(input.request.identity.promptTokens);
    this.expectedOutputTokens = input.expectedOutputTokens;
    this.chosen = parts.takesPair === true ? candidates.length : choice.index;
    this.tied = choice.tied;
    this.draw = choice.draw;
    this.best = choice.best;
    this.priced = prices !== null;
    this.weights = prices?.weights ?? null;

    const rows = candidates.length + (pair === null ? 0 : 1);
    const width = prices === null ? UNPRICED_WIDTH : PRICED_WIDTH;
    const incarnationBytes = rows * 8;
    const figureBytes = rows * width * 4;
    const buffer = new ArrayBuffer(incarnationBytes + figureBytes + (prices === null ? 0 : rows * TERMS.length));
    const incarnations = new Float64Array(buffer, 0, rows);
    const figures = new Float32Array(buffer, incarnationBytes, rows * width);
    const replicaIds: string[] = [];
    for (let row = 0, at = 0; row < candidates.length; row++, at += width) {
      const { id, incarnation, metrics } = candidates[row]!;
      replicaIds.push(id);
      incarnations[row] = incarnation;
      figures[at + CACHED] = input.cachedTokens[row] ?? 0;
      figures[at + FACTS_AGE] = metrics === null ? Number.NaN : nowMs - metrics.atMs;
      figures[at + SCORE] = scores === null ? Number.NaN : scores[row]!;
    }
    this.replicaIds = replicaIds;
    this.#incarnations = incarnations;
    this.#figures = figures;
    this.#bases = new Uint8Array(buffer, incarnationBytes + figureBytes);
    this.#width = width;
    if (prices !== null) copyPrices(prices, candidates.length, figures, this.#bases);
    this.pair = pair === null ? null : this.#addPair(pair, candidates.length, replicaIds, nowMs);
  }

  #addPair(pair: PricedPair, row: number, replicaIds: string[], nowMs: number): DecidedPair {
    const { prefill, decode, link, terms, bases } = pair;
    const figures = this.#figures;
    const at = row * this.#width;
    replicaIds.push(decode.id);
    this.#incarnations[row] = decode.incarnation;
    figures[at + CACHED] = pair.prefillCachedTokens;
    // As old as the older of the two.
    const atMs = Math.min(prefill.metrics?.atMs ?? Number.NaN, decode.metrics?.atMs ?? Number.NaN);
    figures[at + FACTS_AGE] = nowMs - atMs;
    figures[at + SCORE] = Number.NaN;
    figures[at + TOTAL] = pair.totalMs;
    for (let column = 0; column < TERMS.length; column++) {
      figures[at + FIRST_TERM + column] = terms[column]!;
      this.#bases[row * TERMS.length + column] = bases[column]!;
    }
    return {
      row,
      prefillId: prefill.id,
      prefillIncarnation: prefill.incarnation,
      decodeCachedTokens: pair.decodeCachedTokens,
      link: link.level,
      transferBytes: pair.transferBytes,
      looked: pair.looked,
    };
  }

  /** Null: the row is one replica, or there is no such pair. */
  pairAt(row: number): DecidedPair | null {
    return this.pair !== null && this.pair.row === row ? this.pair : null;
  }

  get rows(): number {
    return this.replicaIds.length;
  }

  /** Of the chosen candidate. */
  get replicaId(): string {
    return this.replicaIds[this.chosen]!;
  }

  /** Predicted time until the chosen replica starts the prompt; NaN where the policy predicts none. */
  get queueMs(): number {
    return this.termMs(this.chosen, "queue");
  }

  incarnation(row: number): number {
    return this.#incarnations[row]!;
  }

  /** Leading prompt tokens thought to be in the candidate's GPU memory. */
  cachedTokens(row: number): number {
    return Math.round(this.#figures[row * this.#width + CACHED]!);
  }

  /** Age of the candidate's last scrape when the choice was made; NaN: there was none. */
  factsAgeMs(row: number): number {
    return this.#figures[row * this.#width + FACTS_AGE]!;
  }

  /** The policy's own figure; NaN where it has none. */
  score(row: number): number {
    return this.#figures[row * this.#width + SCORE]!;
  }

  /** Weighted sum of the terms; NaN where the policy has no prices. */
  totalMs(row: number): number {
    return this.priced ? this.#figures[row * this.#width + TOTAL]! : Number.NaN;
  }

  /** Unweighted; NaN where the policy has no prices. */
  termMs(row: number, term: TermName): number {
    return this.priced ? this.#figures[row * this.#width + FIRST_TERM + COLUMN[term]]! : Number.NaN;
  }

  /** Null where the policy has no prices. */
  basis(row: number, term: TermName): BasisName | null {
    return this.priced ? BASES[this.#bases[row * TERMS.length + COLUMN[term]]!]! : null;
  }

  /** Row of the best candidate that was not chosen, by price or else by score; null: there is none, or no figure. */
  get runnerUp(): number | null {
    let found: number | null = null;
    let least = Number.POSITIVE_INFINITY;
    for (let row = 0; row < this.rows; row++) {
      if (row === this.chosen) continue;
      const figure = this.priced ? this.totalMs(row) : this.best === "lowest" ? this.score(row) : -this.score(row);
      if (!(figure < least)) continue;
      found = row;
      least = figure;
    }
    return found;
  }
}

function copyPrices({ totals, terms, bases }: PriceTable, rows: number, figures: Float32Array, into: Uint8Array): void {
  let from = 0;
  for (let row = 0; row < rows; row++) {
    const to = row * PRICED_WIDTH;
    figures[to + TOTAL] = totals[row]!;
    for (let column = 0; column < TERMS.length; column++, from++) {
      figures[to + FIRST_TERM + column] = terms[from]!;
      into[from] = bases[from]!;
    }
  }
}

export function recordDecision(parts: DecisionParts): Decision {
  return new Decision(parts);
}
