import type { PriceSettings } from "../priceSettings.ts";
import type { ChoiceInput } from "../policy.ts";
import { LEARNED, MEASURED, PRIOR, STALE } from "./term.ts";

/**
 * One request on one candidate, as plain numbers: the input of every term. One object is overwritten for each
 * candidate, so that pricing a pool allocates nothing.
 */
export class Outlook {
  /** Of the whole prompt. */
  promptTokens = 0;
  /** Leading prompt tokens in GPU memory; at least one token is always computed. */
  cachedTokens = 0;
  hostTokens = 0;
  diskTokens = 0;
  sequences = 0;
  /** Of each sequence; 0 for a request that generates nothing. */
  outputTokens = 0;
  /** Since the request arrived. */
  waitedMs = 0;
  /** In the router's line for this replica. */
  lineMs = 0;

  /** Sequences there: decoding, being prefilled or waiting. */
  there = 0;
  waiting = 0;
  decoding = 0;
  /** Context tokens of all that is there, prompts that still wait included; prefixes shared by n count n times. */
  contextTokens = 0;
  pendingTokens = 0;
  pendingMs = 0;
  /** Output tokens still to come, of each sequence there, on average. */
  remainingTokensEach = 0;
  /** Of the decoding request that ends first. */
  earliestRemainingTokens = 0;

  slots = 0;
  capacityTokens = 0;
  /** KV tokens in use, shared prefixes once where a fresh scrape tells. */
  inUseTokens = 0;
  /** Tokens that the replica's cache holds, in use or not; NaN: not known. */
  heldTokens = 0;
  /** Share of prompt tokens that its cache answered; NaN: not known. */
  hitShare = 0;

  /** A decode step as things are. */
  stepNowMs = 0;
  /** A decode step of the batch with this request in it, half way through its output. */
  joinedStepMs = 0;
  /** The same batch without it. */
  apartStepMs = 0;
  /** Fixed part of a prefill: a step that holds nothing else. */
  prefillBaseMs = 0;
  /** Linear part of a prefill. */
  prefillMsPerKtok = 0;

  loadBasis = MEASURED;
  latencyBasis = MEASURED;
  limitsBasis = MEASURED;
  cacheBasis = MEASURED;

  /** Takes in candidate `at` of `input`. */
  look(input: ChoiceInput, at: number, settings: PriceSettings): void {
    const { request, nowMs } = input;
    const replica = input.candidates[at]!;
    const { latency, metrics } = replica;
    const { identity } = request;

    this.promptTokens = Math.max(1, identity.promptTokens || 0);
    this.cachedTokens = within(input.cachedTokens[at], 0, this.promptTokens - 1);
    this.hostTokens = within(input.hostTokens?.[at], this.cachedTokens, this.promptTokens - 1);
    this.diskTokens = within(input.diskTokens?.[at], this.hostTokens, this.promptTokens - 1);
    this.sequences = Math.max(1, request.sequences || 0);
    this.outputTokens = request.generates ? Math.max(1, input.expectedOutputTokens || 0) : 0;
    this.waitedMs = Math.max(0, nowMs - request.arrivedMs);
    this.lineMs = Math.max(0, input.lineMs?.[at] ?? 0);

    const load = replica.load.at(nowMs);
    this.there = load.sequences;
    this.waiting = load.waitingSequences;
    this.decoding = load.decodingSequences;
    this.contextTokens = Math.max(0, load.reservedKvTokens - load.remainingOutputTokens);
    this.pendingTokens = load.pendingPrefillTokens;
    this.pendingMs = load.pendingPrefillMs;
    this.remainingTokensEach = load.sequences > 0 ? load.remainingOutputTokens / load.sequences : 0;
    this.earliestRemainingTokens = replica.load.earliestRemainingTokens();

    const limits = replica.limits();
    this.slots = Math.max(1, limits.maxRunningRequests);
    this.capacityTokens = Math.max(1, limits.kvCapacityTokens);
    this.limitsBasis = limits.assumed.length === 0 ? MEASURED : PRIOR;
    this.latencyBasis = latency.basis === "learned" ? LEARNED : PRIOR;
    this.cacheBasis = identity.unhashable === null ? LEARNED : PRIOR;
    const fresh = metrics !== null && nowMs - metrics.atMs <= settings.staleAfterMs;
    this.loadBasis = metrics === null ? PRIOR : fresh ? MEASURED : STALE;

    // The ledger counts a prefix that ten requests share ten times, the engine once; what was placed since the scrape
    // is still pending, more or less.
    const usage = fresh ? metrics.value.kvUsage : null;
    this.inUseTokens =
      usage === null
        ? this.contextTokens
        : Math.min(this.contextTokens, usage * this.capacityTokens + this.pendingTokens);
    this.heldTokens = input.heldTokens?.[at] ?? Number.NaN;
    this.hitShare = hitShare(metrics?.value.prefixHitTokensTotal, metrics?.value.prefixQueriedTokensTotal);

    this.prefillBaseMs = latency.prefillBaseMs;
    this.prefillMsPerKtok = latency.prefillMsPerKtok;
    this.stepNowMs = latency.stepMs(load.decodingSequences, load.decodeKvTokens);
    const batch = Math.min(this.there, this.slots);
    const inBatch = this.there > 0 ? batch / this.there : 0;
    this.apartStepMs = latency.stepMs(batch, this.contextTokens * inBatch);
    const joined = this.there + this.sequences;
    const joinedBatch = Math.min(joined, this.slots);
    const ownKvTokens = this.promptTokens + (this.sequences * this.outputTokens) / 2;
    this.joinedStepMs = latency.stepMs(joinedBatch, (this.contextTokens + ownKvTokens) * (joinedBatch / joined));
  }
}

/** `value` forced into the range; `low` where there is no usable value. */
function within(value: number | undefined, low: number, high: number): number {
  return value !== undefined && value > low ? Math.min(value, high) : low;
}

function hitShare(hits: number | null | undefined, queried: number | null | undefined): number {
  if (hits === null || hits === undefined || queried === null || queried === undefined || queried <= 0)
    return Number.NaN;
  return Math.min(1, Math.max(0, hits / queried));
}
