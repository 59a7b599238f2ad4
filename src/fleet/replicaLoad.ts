import type { EngineMetrics } from "#src/engines/vocabulary.ts";
import { OwnCountHistory } from "./ownCountHistory.ts";
import { ReservationList } from "./reservation.ts";
import type { Reservation } from "./reservation.ts";

/** Load at one moment, own and foreign together. One object per replica, reused by each `at()`: copy it to keep it. */
export interface LoadView {
  /** Batch slots taken or promised, waiting sequences included. */
  sequences: number;
  /** Of these, sequences whose prompt is not processed yet. */
  waitingSequences: number;
  decodingSequences: number;
  /** Context tokens of the decoding sequences together: what one decode step reads. */
  decodeKvTokens: number;
  /** Prompt tokens still to compute, cached ones not counted. */
  pendingPrefillTokens: number;
  /** The same in predicted time, less what the one at the head has had already. */
  pendingPrefillMs: number;
  /** KV tokens when everything here has reached its expected length. */
  reservedKvTokens: number;
  /** Expected output tokens still to come, over all sequences. */
  remainingOutputTokens: number;
  /** Part of `sequences` that others (further routers, direct clients) put there, by the last scrape and aged. */
  foreignSequences: number;
}

/** A scrape counts in full for this long and then fades to nothing over as long again. */
export const FOREIGN_FRESH_MS = 5_000;
/**
 * A scrape shows the engine some time before it arrives, and our requests reach and leave an engine a little after and
 * before they reach and leave the ledger. What we had there within this time is taken for ours.
 */
const SCRAPE_SKEW_MS = 250;
/** Weight of one request in the mean size of requests, by which foreign ones are guessed. */
const MEAN_WEIGHT = 0.05;

/**
 * What the ledger has placed on one replica and not released, plus what others placed there. Own counters are whole
 * numbers (times: multiples of 1/1024 ms), so sums and differences are exact and an empty replica reads exactly zero.
 * Only the ledger changes them.
 */
export class ReplicaLoad {
  requests = 0;
  sequences = 0;
  waitingSequences = 0;
  decodingSequences = 0;
  decodeKvTokens = 0;
  pendingPrefillTokens = 0;
  pendingPrefillMs = 0;
  reservedKvTokens = 0;
  remainingOutputTokens = 0;

  readonly waiting = new ReservationList();
  readonly decoding = new ReservationList();
  /** Since when the prompt at the head of the line is thought to be computed; NaN: nothing waits. */
  headSinceMs = Number.NaN;

  #foreignSequences = 0;
  #foreignWaiting = 0;
  #foreignKvTokens = 0;
  #scrapedMs = Number.NEGATIVE_INFINITY;
  readonly #ownSequences = new OwnCountHistory(SCRAPE_SKEW_MS);
  readonly #ownKvTokens = new OwnCountHistory(SCRAPE_SKEW_MS);
  #meanNewTokens = 512;
  #meanPrefillMs = 16;
  #meanOutputTokens = 256;
  #earliestRemaining = 0;
  #earliestKnown = false;

  readonly #view: LoadView = {
    sequences: 0,
    waitingSequences: 0,
    decodingSequences: 0,
    decodeKvTokens: 0,
    pendingPrefillTokens: 0,
    pendingPrefillMs: 0,
    reservedKvTokens: 0,
    remainingOutputTokens: 0,
    foreignSequences: 0,
  };

  /** Own and foreign load now. O(1). */
  at(nowMs: number): LoadView {
    const view = this.#view;
    const share = this.#foreignShare(nowMs);
    const foreign = this.#foreignSequences * share;
    const foreignWaiting = this.#foreignWaiting * share;
    const foreignKv = this.#foreignKvTokens * share;
    view.foreignSequences = foreign;
    view.sequences = this.sequences + foreign;
    view.waitingSequences = this.waitingSequences + foreignWaiting;
    view.decodingSequences = this.decodingSequences + foreign - foreignWaiting;
    view.decodeKvTokens = this.decodeKvTokens + foreignKv;
    view.pendingPrefillTokens = this.pendingPrefillTokens + foreignWaiting * this.#meanNewTokens;
    view.pendingPrefillMs = this.pendingPrefillMs - this.#headDoneMs(nowMs) + foreignWaiting * this.#meanPrefillMs;
    view.reservedKvTokens = this.reservedKvTokens + foreignKv;
    view.remainingOutputTokens = this.remainingOutputTokens + (foreign * this.#meanOutputTokens) / 2;
    return view;
  }

  /** Predicted time of the prompts that others have there. */
  foreignPendingMs(nowMs: number): number {
    return this.#foreignWaiting * this.#foreignShare(nowMs) * this.#meanPrefillMs;
  }

  /** Slots that count as taken now, rounded to whole sequences. */
  slotsTaken(nowMs: number): number {
    return this.sequences + Math.round(this.#foreignSequences * this.#foreignShare(nowMs));
  }

  /**
   * Output tokens until the first of the decoding requests is expected to end: times a step, when a slot comes free.
   * Zero if none decodes. Walks the decoding requests only after one has changed.
   */
  earliestRemainingTokens(): number {
    if (!this.#earliestKnown) {
      let least = Number.POSITIVE_INFINITY;
      for (let one = this.decoding.first; one !== null; one = one.after)
        least = Math.min(least, one.remainingTokens / one.sequences);
      this.#earliestRemaining = least === Number.POSITIVE_INFINITY ? 0 : least;
      this.#earliestKnown = true;
    }
    return this.#earliestRemaining;
  }

  /** What others have there: the scraped load that we did not put there ourselves. */
  reconcile(metrics: EngineMetrics, kvCapacityTokens: number, nowMs: number): void {
    if (metrics.runningRequests === null) return;
    const scrapedWaiting = metrics.waitingRequests ?? 0;
    const own = this.#ownSequences.most(nowMs);
    this.#foreignSequences = Math.max(0, metrics.runningRequests + scrapedWaiting - own);
    this.#foreignWaiting = Math.min(this.#foreignSequences, scrapedWaiting);
    const foreignRunning = this.#foreignSequences - this.#foreignWaiting;
    const usedTokens = metrics.kvUsage === null ? 0 : metrics.kvUsage * kvCapacityTokens;
    // KV in use without a foreign sequence is our own rounding (blocks, prompts half done), not somebody's.
    this.#foreignKvTokens = foreignRunning === 0 ? 0 : Math.max(0, usedTokens - this.#ownKvTokens.most(nowMs));
    this.#scrapedMs = nowMs;
  }

  /** To be called by the ledger after each change of the own counters. */
  changed(nowMs: number): void {
    this.#earliestKnown = false;
    this.#ownSequences.note(this.sequences, nowMs);
    this.#ownKvTokens.note(this.reservedKvTokens - this.remainingOutputTokens, nowMs);
  }

  /** Learns the usual size of a request here, by which foreign ones are guessed. */
  learnSize(reservation: Reservation): void {
    this.#meanNewTokens += MEAN_WEIGHT * (reservation.newTokens - this.#meanNewTokens);
    this.#meanPrefillMs += MEAN_WEIGHT * (reservation.prefillMs - this.#meanPrefillMs);
    this.#meanOutputTokens += MEAN_WEIGHT * (reservation.expectedOutputTokens - this.#meanOutputTokens);
  }

  #foreignShare(nowMs: number): number {
    const ageMs = nowMs - this.#scrapedMs;
    if (ageMs <= FOREIGN_FRESH_MS) return 1;
    return Math.max(0, 2 - ageMs / FOREIGN_FRESH_MS);
  }

  #headDoneMs(nowMs: number): number {
    const head = this.waiting.first;
    return head === null ? 0 : Math.min(head.prefillMs, Math.max(0, nowMs - this.headSinceMs));
  }
}
