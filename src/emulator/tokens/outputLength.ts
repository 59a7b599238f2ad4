import { SeededRandom } from "#src/determinism/random.ts";

/** How long answers are when nothing cuts them off: log-normal, as real traffic roughly is. */
export interface AnswerLength {
  readonly medianTokens: number;
  /** Standard deviation of the logarithm; 0 makes every answer `medianTokens` long. */
  readonly sigma: number;
}

/** The length that belongs to a seed, at least 1. */
export function drawAnswerTokens(length: AnswerLength, seed: number): number {
  const random = new SeededRandom(seed);
  // Box and Muller's transform; 1 - next() keeps the logarithm finite.
  const normal = Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
  return Math.max(1, Math.round(length.medianTokens * Math.exp(length.sigma * normal)));
}
