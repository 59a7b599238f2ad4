import type { Random } from "#src/determinism/random.ts";

/** Which of equally good candidates was taken. */
export interface Pick {
  index: number;
  /** How many were equally good. */
  tied: number;
  /** What the random source gave; NaN: it was not asked. */
  draw: number;
}

/**
 * The lowest of the first `count` scores; those within `tolerance` of it are equal and one of them is drawn, so that
 * the order of a list never decides. NaN is never chosen over a number.
 */
export function pickLowest(
  scores: ArrayLike<number>,
  count: number,
  tolerance: number,
  random: Random,
  into: Pick,
): Pick {
  let lowest = Number.POSITIVE_INFINITY;
  for (let at = 0; at < count; at++) if (scores[at]! < lowest) lowest = scores[at]!;
  const bound = lowest + tolerance;
  let tied = 0;
  for (let at = 0; at < count; at++) if (scores[at]! <= bound) tied++;
  // No number among them: any is as good as another.
  const usable = tied > 0;
  if (!usable) tied = count;
  into.tied = tied;
  into.draw = tied > 1 ? random.next() : Number.NaN;
  let skip = tied > 1 ? Math.floor(into.draw * tied) : 0;
  into.index = 0;
  for (let at = 0; at < count; at++) {
    if (usable && !(scores[at]! <= bound)) continue;
    into.index = at;
    if (skip-- === 0) break;
  }
  return into;
}
