import { SeededRandom } from "#src/determinism/random.ts";

/**
 * An own stream of random numbers for each thing that is drawn, so that another policy, or one more draw somewhere,
 * leaves all other draws of the same seed as they were.
 */
export function randomFor(seed: number, what: string): SeededRandom {
  let mixed = Math.imul(seed + 1, 0x9e3779b1);
  for (let at = 0; at < what.length; at++) mixed = Math.imul(mixed ^ what.charCodeAt(at), 0x01000193);
  return new SeededRandom(mixed ^ (mixed >>> 15));
}
