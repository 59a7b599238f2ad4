import type { Filling } from "./prefill.ts";
import type { Outlook } from "./outlook.ts";
import { decodeSteps } from "./decode.ts";

/**
 * Delay of those already there, summed over them. Each stands still while this prompt is computed (chunking spreads
 * that over more steps and makes it no less), and each has longer steps for as long as both are there.
 */
export function interferenceMs(outlook: Outlook, filling: Filling): number {
  const others = Math.min(outlook.there, outlook.slots);
  const stallMs = filling.computeMs;
  const together = Math.min(outlook.remainingTokensEach, decodeSteps(outlook));
  const lengthenedMs = Math.max(0, outlook.joinedStepMs - outlook.apartStepMs) * together;
  return others * (stallMs + lengthenedMs);
}
