import { slotsNeeded } from "#src/fleet/replica.ts";
import type { PriceSettings } from "../priceSettings.ts";
import type { Outlook } from "./outlook.ts";

/**
 * Sequences that must end before this request gets its batch slots and the KV memory of its prompt. Each that ends is
 * taken to free an average share of the memory in use.
 */
function departuresNeeded(outlook: Outlook): number {
  const { there, sequences, slots, inUseTokens, promptTokens, capacityTokens } = outlook;
  if (there <= 0) return 0;
  const forSlots = there + slotsNeeded(sequences, slots) - slots;
  const missingTokens = inUseTokens + promptTokens - capacityTokens;
  const forMemory = missingTokens > 0 && inUseTokens > 0 ? missingTokens / (inUseTokens / there) : 0;
  return Math.max(0, Math.min(there, Math.max(forSlots, forMemory)));
}

/**
 * Decode steps until `departures` sequences have ended. Remaining lengths are taken as spread evenly between 0 and
 * twice their mean, so the k-th of n ends after 2·mean·k/(n+1) steps; the first one is known from the ledger.
 */
function stepsUntil(departures: number, outlook: Outlook): number {
  if (departures <= 0) return 0;
  const running = Math.min(outlook.there, outlook.slots);
  const expected = (2 * outlook.remainingTokensEach * departures) / (running + 1);
  return departures <= 1 && outlook.earliestRemainingTokens > 0
    ? outlook.earliestRemainingTokens
    : Math.max(expected, outlook.earliestRemainingTokens);
}

/**
 * Time until the replica starts this prompt: the prompts ahead, there and in the router's line for it, and the decode
 * steps they share or that have to pass until there is room. A prompt ahead costs its compute; its own fixed part falls away, as prompts share steps, and the
 * steps are added instead: of what decodes there, where something does. The step under way is half done on average.
 */
export function queueMs(outlook: Outlook, settings: PriceSettings): number {
  const { waiting, decoding, pendingTokens, pendingMs, prefillBaseMs, stepNowMs, lineMs } = outlook;
  const freeing = stepsUntil(departuresNeeded(outlook), outlook);
  const chunks = waiting > 0 ? Math.max(1, pendingTokens / settings.stepTokenBudget) : 0;
  const aheadMs = lineMs + Math.max(0, pendingMs - waiting * prefillBaseMs);
  if (decoding <= 0) return aheadMs + chunks * prefillBaseMs + freeing * stepNowMs;
  return aheadMs + Math.max(0.5 + chunks, freeing) * stepNowMs;
}
