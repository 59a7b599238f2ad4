import type { Random } from "#src/determinism/random.ts";
import type { Spread } from "./shapes.ts";

/** Exponential, by its mean. */
export function exponential(mean: number, random: Random): number {
  return -mean * Math.log(1 - random.next());
}

/** Whole and at least 1, geometric, by its mean (at least 1). */
export function geometric(mean: number, random: Random): number {
  return mean <= 1 ? 1 : 1 + Math.floor(Math.log(1 - random.next()) / Math.log(1 - 1 / mean));
}

export function logNormal({ mean, sigma }: Spread, random: Random): number {
  // Box and Muller; the second value is thrown away, so that each draw takes the same number of random numbers.
  const normal = Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
  return mean * Math.exp(sigma * normal - (sigma * sigma) / 2);
}

/** From 0 on, the first most often: the chance of `n` falls with 1 / (n + 1). */
export function zipf(choices: number, random: Random): number {
  let total = 0;
  for (let at = 1; at <= choices; at++) total += 1 / at;
  let left = random.next() * total;
  for (let at = 1; at < choices; at++) {
    left -= 1 / at;
    if (left < 0) return at - 1;
  }
  return choices - 1;
}
