import type { Random } from "#src/determinism/random.ts";

/** Speculative decoding: each step drafts tokens for every decoding sequence and verifies them in the same pass. */
export interface Speculation {
  /** Drafted for each sequence and step. */
  readonly draftTokens: number;
  /** Chance that a drafted token is right, where those before it were. */
  readonly acceptance: number;
  /** What drafting one token takes, for the whole batch at once. */
  readonly draftMs: number;
  readonly random: Random;
}

/** How many of the drafted tokens are kept: those before the first wrong one. */
export function keptOf(draftedTokens: number, { acceptance, random }: Speculation): number {
  let kept = 0;
  while (kept < draftedTokens && random.next() < acceptance) kept++;
  return kept;
}
