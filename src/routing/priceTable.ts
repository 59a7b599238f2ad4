import { TERMS } from "./terms/term.ts";

const WIDTH = TERMS.length;

/**
 * Prices of one choice: a row per candidate, a column per term. Made once and overwritten by each choice; it grows to
 * the largest pool seen and allocates nothing else.
 */
export class PriceTable {
  #rows = 0;
  #terms = new Float64Array(8 * WIDTH);
  #bases = new Uint8Array(8 * WIDTH);
  #totals = new Float64Array(8);
  /** What each column counted for in `totals`. */
  weights: Float64Array = new Float64Array(WIDTH).fill(1);

  get rows(): number {
    return this.#rows;
  }

  /** Unweighted milliseconds, row by row: `terms[row * TERMS.length + column]`. */
  get terms(): Float64Array {
    return this.#terms;
  }

  /** Basis codes, laid out as `terms`. */
  get bases(): Uint8Array {
    return this.#bases;
  }

  /** Weighted sums; Infinity where a term could not be computed. */
  get totals(): Float64Array {
    return this.#totals;
  }

  /** Sets the number of rows, which have to be filled anew. */
  resize(rows: number): void {
    this.#rows = rows;
    if (rows <= this.#totals.length) return;
    const room = 2 ** Math.ceil(Math.log2(rows));
    this.#terms = new Float64Array(room * WIDTH);
    this.#bases = new Uint8Array(room * WIDTH);
    this.#totals = new Float64Array(room);
  }
}
