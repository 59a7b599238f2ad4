import type { Random } from "../../../determinism/random.ts";

/** Doubles up to a maximum, with jitter: engines that went down together must not be asked together for ever. */
export function backOffMs(
  failures: number,
  { firstMs, maxMs }: { firstMs: number; maxMs: number },
  random: Random,
): number {
  const fullMs = Math.min(maxMs, firstMs * 2 ** Math.min(failures, 30));
  return fullMs * (0.5 + random.next() / 2);
}
