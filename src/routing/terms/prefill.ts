import type { PriceSettings } from "../priceSettings.ts";
import type { PricedLatency } from "../pricedReplica.ts";
import type { Outlook } from "./outlook.ts";

/** How the prompt gets into GPU memory: what is restored from slower tiers and what is computed. */
export interface Filling {
  /** Leading tokens that need no computing: cached or restored. */
  readyTokens: number;
  restoreMs: number;
  /** Compute of the rest, without a step's fixed part: what it adds to a step that is taken anyway. */
  computeMs: number;
}

/**
 * Restores from host memory, then from disk, each only where that is quicker than computing the same tokens; so
 * `restoreMs` never exceeds the compute it saves. Writes to `into`.
 */
export function fill(outlook: Outlook, latency: PricedLatency, settings: PriceSettings, into: Filling): void {
  const { promptTokens, cachedTokens, hostTokens, diskTokens, prefillBaseMs } = outlook;
  let ready = cachedTokens;
  let restoreMs = 0;
  let computeMs = latency.prefillMs(promptTokens - ready, ready);
  for (let tier = 0; tier < 2; tier++) {
    const upTo = tier === 0 ? hostTokens : diskTokens;
    if (upTo <= ready) continue;
    const perKtokMs = tier === 0 ? settings.hostRestoreMsPerKtok : settings.diskRestoreMsPerKtok;
    const tierMs = ((upTo - ready) / 1000) * perKtokMs;
    const afterMs = latency.prefillMs(promptTokens - upTo, upTo);
    if (computeMs - afterMs <= tierMs) continue;
    restoreMs += tierMs;
    computeMs = afterMs;
    ready = upTo;
  }
  into.readyTokens = ready;
  into.restoreMs = restoreMs;
  into.computeMs = Math.max(0, computeMs - prefillBaseMs);
}

/**
 * Compute time of the prompt tokens that are not cached. On an idle replica each chunk is a step of its own; where
 * others are, each chunk rides on a decode step, which has to be waited for too.
 */
export function prefillMs(outlook: Outlook, filling: Filling, settings: PriceSettings): number {
  const chunks = Math.max(1, (outlook.promptTokens - filling.readyTokens) / settings.stepTokenBudget);
  const perChunkMs = outlook.there > 0 ? Math.max(outlook.stepNowMs, outlook.prefillBaseMs) : outlook.prefillBaseMs;
  return filling.computeMs + chunks * perChunkMs;
}
