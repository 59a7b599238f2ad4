import type { PriceSettings } from "../priceSettings.ts";
import type { PricedLatency } from "../pricedReplica.ts";
import type { Outlook } from "./outlook.ts";

/** Cached tokens, used by nobody now, that this request's KV pushes out. A cache of unknown content is taken as full. */
function evictedTokens(outlook: Outlook, readyTokens: number): number {
  const { capacityTokens, inUseTokens, heldTokens, promptTokens, sequences, outputTokens } = outlook;
  const held = Number.isNaN(heldTokens) ? capacityTokens : heldTokens;
  const occupied = Math.min(capacityTokens, Math.max(inUseTokens, held));
  const needed = promptTokens - readyTokens + sequences * outputTokens;
  return Math.max(0, Math.min(needed - (capacityTokens - occupied), occupied - inUseTokens));
}

/**
 * Chance that an evicted token would have been used. A cached token is used h/(1−h) times on average, where h is the
 * share of prompt tokens found cached; the blocks that leave first are the ones least likely to come up again.
 */
function reuseChance(outlook: Outlook, settings: PriceSettings): number {
  const share = Number.isNaN(outlook.hitShare) ? settings.assumedHitShare : outlook.hitShare;
  return settings.coldEndShare * Math.min(1, share / Math.max(1e-9, 1 - share));
}

/** Computing again what is pushed out, times the chance that it is asked for. The evicted are scattered: linear part. */
export function evictionMs(outlook: Outlook, readyTokens: number, settings: PriceSettings): number {
  const ktok = evictedTokens(outlook, readyTokens) / 1000;
  return ktok * outlook.prefillMsPerKtok * reuseChance(outlook, settings);
}

/**
 * Most KV tokens that what is there will use beyond what it uses now. With remaining lengths spread evenly up to twice
 * their mean m, after t steps (1 − t/2m) of the n are left, each grown by t to C + t; that peaks at t = m − C/2.
 */
function peakGrowthTokens(outlook: Outlook): number {
  const { there, contextTokens, remainingTokensEach: mean } = outlook;
  if (there <= 0) return 0;
  const context = contextTokens / there;
  if (2 * mean <= context) return 0;
  return (there * (2 * mean + context) ** 2) / (8 * mean) - contextTokens;
}

/**
 * Computing again the sequences that the engine throws out when the peak does not fit: as many average ones as cover
 * what is missing.
 */
export function preemptionMs(outlook: Outlook, latency: PricedLatency): number {
  const { there, sequences, contextTokens, promptTokens, outputTokens, inUseTokens, capacityTokens } = outlook;
  const ownTokens = promptTokens + sequences * outputTokens;
  const missingTokens = inUseTokens + peakGrowthTokens(outlook) + ownTokens - capacityTokens;
  if (missingTokens <= 0) return 0;
  const averageTokens = (contextTokens + ownTokens) / (there + sequences);
  return (missingTokens / averageTokens) * latency.prefillMs(averageTokens, 0);
}
