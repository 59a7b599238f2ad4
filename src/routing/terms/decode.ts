import type { Outlook } from "./outlook.ts";

/** Output tokens of each sequence that take a decode step: the first one comes out of the prefill. */
export function decodeSteps(outlook: Outlook): number {
  return Math.max(0, outlook.outputTokens - 1);
}

/** Expected output × step time of the batch that the request joins. Its sequences decode side by side. */
export function decodeMs(outlook: Outlook): number {
  return decodeSteps(outlook) * outlook.joinedStepMs;
}
