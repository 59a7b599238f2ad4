import type { Decision } from "#src/routing/decision.ts";
import { TERMS } from "#src/routing/terms/term.ts";

const float = new Float64Array(1);
const halves = new Uint32Array(float.buffer);

/**
 * 64 bits over everything that a decision holds, all terms of all candidates included, but for the request's id, which
 * is chance from outside. Equal decisions have equal digests; that two unequal ones do is not to be expected.
 */
export class DecisionDigest {
  #low = 0;
  #high = 0;

  of(decision: Decision): readonly [low: number, high: number] {
    this.#low = 0x243f6a88;
    this.#high = 0x85a308d3;
    for (const text of [decision.id, decision.model, decision.policy, decision.branch, decision.eligibility])
      this.#text(text);
    for (const { replicaId, reason } of decision.ineligible) {
      this.#text(replicaId);
      this.#text(reason);
    }
    this.#number(decision.attempt);
    this.#number(decision.atMs);
    this.#number(decision.promptTokens);
    this.#number(decision.expectedOutputTokens);
    this.#number(decision.chosen);
    this.#number(decision.tied);
    this.#number(decision.draw);
    this.#text(decision.best);
    for (const weight of decision.weights ?? []) this.#number(weight);
    for (let row = 0; row < decision.rows; row++) this.#row(decision, row);
    if (decision.pair !== null) {
      this.#text(decision.pair.prefillId);
      this.#number(decision.pair.prefillIncarnation);
      this.#number(decision.pair.transferBytes);
    }
    return [this.#low >>> 0, this.#high >>> 0];
  }

  #row(decision: Decision, row: number): void {
    this.#text(decision.replicaIds[row]!);
    this.#number(decision.incarnation(row));
    this.#number(decision.cachedTokens(row));
    this.#number(decision.factsAgeMs(row));
    this.#number(decision.score(row));
    if (!decision.priced) return;
    this.#number(decision.totalMs(row));
    for (const term of TERMS) {
      this.#number(decision.termMs(row, term));
      // Their first letters tell the bases apart.
      this.#word(decision.basis(row, term)!.charCodeAt(0));
    }
  }

  #text(text: string): void {
    this.#word(text.length);
    for (let at = 0; at < text.length; at++) this.#word(text.charCodeAt(at));
  }

  #number(value: number): void {
    // Any NaN is as good as another, and only their bits differ.
    float[0] = Number.isNaN(value) ? Number.NaN : value;
    this.#word(halves[0]!);
    this.#word(halves[1]!);
  }

  /** Two lanes of MurmurHash3's body, each stirred by the other. */
  #word(word: number): void {
    const mixed = Math.imul(word, 0xcc9e2d51);
    const turned = Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
    const low = this.#low ^ turned;
    this.#low = (Math.imul((low << 13) | (low >>> 19), 5) + 0xe6546b64) | 0;
    const high = this.#high ^ Math.imul(word ^ this.#low, 0x85ebca6b);
    this.#high = (Math.imul((high << 11) | (high >>> 21), 9) + 0x38495ab5) | 0;
  }
}
