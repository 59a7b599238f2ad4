import type { Decision } from "./decision.ts";
import { TERMS } from "./terms/term.ts";
import type { BasisName, TermName } from "./terms/term.ts";

export interface ExplainedCandidate {
  readonly replica: string;
  readonly incarnation: number;
  readonly chosen: boolean;
  /** Of a pair: on its prefill side. */
  readonly cachedTokens: number;
  /** Null: one replica does it all. Else `replica` decodes, and this one prefills. */
  readonly pair: ExplainedPair | null;
  /** Null: never scraped. */
  readonly factsAgeMs: number | null;
  readonly score: number | null;
  /** Null: the policy has no prices, or this one could not be computed. */
  readonly totalMs: number | null;
  readonly terms: Readonly<Record<TermName, { readonly ms: number | null; readonly basis: BasisName }>> | null;
}

export interface ExplainedPair {
  readonly prefill: string;
  readonly prefillIncarnation: number;
  readonly decodeCachedTokens: number;
  /** The closest thing that both replicas share. */
  readonly link: string;
  readonly transferBytes: number;
  readonly pairsPriced: number;
}

/** A decision in words, for JSON. */
export interface ExplainedDecision {
  readonly id: string;
  readonly requestId: string;
  readonly model: string;
  readonly policy: string;
  readonly branch: string;
  readonly eligibility: string;
  readonly attempt: number;
  /** Since 1970, in the admin API. */
  readonly atMs: number;
  readonly promptTokens: number;
  readonly expectedOutputTokens: number;
  readonly tie: { readonly candidates: number; readonly draw: number | null };
  readonly weights: Readonly<Record<TermName, number>> | null;
  readonly winner: string;
  readonly runnerUp: string | null;
  readonly candidates: readonly ExplainedCandidate[];
  readonly ineligible: readonly { readonly replicaId: string; readonly reason: string }[];
}

/** Everything a decision holds, with names. `epochMs`: when the scheduler's clock was at 0; absent: `atMs` stays on it. */
export function explain(decision: Decision, epochMs = 0): ExplainedDecision {
  const { runnerUp, weights } = decision;
  return {
    id: decision.id,
    requestId: decision.requestId,
    model: decision.model,
    policy: decision.policy,
    branch: decision.branch,
    eligibility: decision.eligibility,
    attempt: decision.attempt,
    atMs: Math.round(epochMs + decision.atMs),
    promptTokens: decision.promptTokens,
    expectedOutputTokens: Math.round(decision.expectedOutputTokens),
    tie: { candidates: decision.tied, draw: finiteOrNull(decision.draw) },
    weights: weights === null ? null : perTerm((_, column) => weights[column]!),
    winner: decision.replicaId,
    runnerUp: runnerUp === null ? null : decision.replicaIds[runnerUp]!,
    candidates: decision.replicaIds.map((_, row) => candidate(decision, row)),
    ineligible: decision.ineligible,
  };
}

/**
 * Winner and runner-up on one line of printable ASCII, for a header:
 * `policy=kvasir branch=cheapest … | winner=a total=12.3ms cached=96 queue=0ms/learned … | runner-up=b …`.
 */
export function explainLine(decision: Decision): string {
  const { runnerUp } = decision;
  const parts = [
    `decision=${decision.id} policy=${decision.policy} branch=${decision.branch} attempt=${decision.attempt}` +
      ` candidates=${decision.rows} tied=${decision.tied}`,
    `winner=${candidateWords(decision, decision.chosen)}`,
  ];
  if (runnerUp !== null) parts.push(`runner-up=${candidateWords(decision, runnerUp)}`);
  return parts.join(" | ").replace(/[^\x20-\x7e]/g, "?");
}

function candidate(decision: Decision, row: number): ExplainedCandidate {
  return {
    replica: decision.replicaIds[row]!,
    incarnation: decision.incarnation(row),
    chosen: row === decision.chosen,
    cachedTokens: decision.cachedTokens(row),
    pair: explainedPair(decision, row),
    factsAgeMs: finiteOrNull(decision.factsAgeMs(row)),
    score: finiteOrNull(decision.score(row)),
    totalMs: finiteOrNull(decision.totalMs(row)),
    terms: decision.priced
      ? perTerm((term) => ({ ms: finiteOrNull(decision.termMs(row, term)), basis: decision.basis(row, term)! }))
      : null,
  };
}

function explainedPair(decision: Decision, row: number): ExplainedPair | null {
  const pair = decision.pairAt(row);
  if (pair === null) return null;
  const { prefillId, prefillIncarnation, decodeCachedTokens, link, transferBytes, looked } = pair;
  return {
    prefill: prefillId,
    prefillIncarnation,
    decodeCachedTokens: Math.round(decodeCachedTokens),
    link,
    transferBytes: Math.round(transferBytes),
    pairsPriced: looked,
  };
}

function candidateWords(decision: Decision, row: number): string {
  const pair = decision.pairAt(row);
  const words = [pair === null ? decision.replicaIds[row]! : `${pair.prefillId}->${decision.replicaIds[row]!}`];
  if (pair !== null) words.push(`link=${pair.link} bytes=${short(pair.transferBytes)}`);
  if (decision.priced) words.push(`total=${short(decision.totalMs(row))}ms`);
  if (!Number.isNaN(decision.score(row))) words.push(`score=${short(decision.score(row))}`);
  words.push(`cached=${short(decision.cachedTokens(row))}`);
  if (decision.priced)
    for (const term of TERMS) {
      const basis = decision.basis(row, term);
      if (basis !== "not_applicable") words.push(`${term}=${short(decision.termMs(row, term))}ms/${basis}`);
    }
  return words.join(" ");
}

function perTerm<Value>(value: (term: TermName, column: number) => Value): Record<TermName, Value> {
  return Object.fromEntries(TERMS.map((term, column) => [term, value(term, column)])) as Record<TermName, Value>;
}

/** At most three decimals. */
function short(value: number): string {
  return Number.isFinite(value) ? String(Math.round(value * 1000) / 1000) : "unknown";
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
