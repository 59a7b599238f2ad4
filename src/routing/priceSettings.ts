import type { TermName } from "./terms/term.ts";

/** Constants of the price. Each can be set in the configuration of the `kvasir` policy; docs/price.md derives them. */
export interface PriceSettings {
  /** What a millisecond of each term counts for in the sum. */
  readonly weights: Readonly<Record<TermName, number>>;
  /** Tokens that an engine computes in one step at most; prompts are cut into chunks of it. */
  readonly stepTokenBudget: number;
  /** Time to bring one adapter into GPU memory. */
  readonly adapterLoadMs: number;
  /** Chance that an adapter pushed out is asked for again. */
  readonly adapterReuse: number;
  readonly hostRestoreMsPerKtok: number;
  readonly diskRestoreMsPerKtok: number;
  /** Share of prompt tokens found cached, where the engine does not publish it. */
  readonly assumedHitShare: number;
  /** How likely a block at the cold end of a cache is used again, relative to the average block. */
  readonly coldEndShare: number;
  /** Scrapes older than this are stale. */
  readonly staleAfterMs: number;
  /** Sums closer than this are equal: no prediction is finer. */
  readonly tieMs: number;
}

export const DEFAULT_PRICE_SETTINGS: PriceSettings = {
  weights: {
    queue: 1,
    prefill: 1,
    restore: 1,
    transfer: 1,
    adapter: 1,
    decode: 1,
    interference: 0.5,
    eviction: 1,
    preemption: 1,
    lateness: 1,
  },
  stepTokenBudget: 8192,
  adapterLoadMs: 200,
  adapterReuse: 0.5,
  hostRestoreMsPerKtok: 6,
  diskRestoreMsPerKtok: 40,
  assumedHitShare: 0.3,
  coldEndShare: 0.2,
  staleAfterMs: 5000,
  tieMs: 0.01,
};
