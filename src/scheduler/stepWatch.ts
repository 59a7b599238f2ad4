import type { Replica } from "#src/fleet/replica.ts";
import type { Placement } from "./placement.ts";

/** Steps that one observation averages over: long enough to even out bursts of the network, short enough to stay clean. */
const WINDOW_STEPS = 8;

/** A stretch of one stream's tokens over which the step time is averaged. */
export interface StepWindow {
  startMs: number;
  startTokens: number;
  sequences: number;
  kvTokens: number;
  /** Value of `prompts` at the start; any prompt placed since has slowed the steps. */
  prompts: number;
  clean: boolean;
}

interface Watched {
  incarnation: number;
  /** Prompts placed on this replica so far. */
  prompts: number;
  lastObservedMs: number;
}

/**
 * Learns step times from the gaps between tokens. A gap counts only if no prompt was being processed on the replica
 * from its start to its end, for a step that carries a prompt chunk is longer. Windows of one replica do not overlap:
 * all its streams see the same steps, and a hundred copies of one observation would drown the older ones.
 */
export class StepWatch {
  readonly #replicas = new WeakMap<Replica, Watched>();

  placed(replica: Replica): void {
    this.#watched(replica).prompts++;
  }

  /** Prompts placed on the replica so far; equal numbers at two moments: none was placed between. */
  prompts(replica: Replica): number {
    return this.#watched(replica).prompts;
  }

  /** `outputTokens` seen so far, all sequences together. */
  tokens(placement: Placement, outputTokens: number, nowMs: number): void {
    const window = placement.stepWindow;
    if (window === null) {
      placement.stepWindow = this.#opened(placement, outputTokens, nowMs);
      return;
    }
    const { replica, reservation } = placement;
    const steps = (outputTokens - window.startTokens) / reservation.sequences;
    if (steps < WINDOW_STEPS) return;
    const watched = this.#watched(replica);
    if (window.clean && window.prompts === watched.prompts && window.startMs >= watched.lastObservedMs) {
      const load = replica.load.at(nowMs);
      const sequences = (window.sequences + Math.max(1, load.decodingSequences)) / 2;
      const kvTokens = (window.kvTokens + load.decodeKvTokens) / 2;
      replica.latency.observeStep(sequences, kvTokens, (nowMs - window.startMs) / steps);
      watched.lastObservedMs = nowMs;
    }
    placement.stepWindow = this.#opened(placement, outputTokens, nowMs);
  }

  /** The stream was held up on its way to the client: the gap that is open now says nothing of the engine. */
  heldUp(placement: Placement): void {
    if (placement.stepWindow !== null) placement.stepWindow.clean = false;
  }

  #opened({ replica }: Placement, startTokens: number, nowMs: number): StepWindow {
    const load = replica.load.at(nowMs);
    return {
      startMs: nowMs,
      startTokens,
      sequences: Math.max(1, load.decodingSequences),
      kvTokens: load.decodeKvTokens,
      prompts: this.#watched(replica).prompts,
      // Foreign load is a fraction where it fades: half a waiting request is as good as none.
      clean: load.waitingSequences < 0.5,
    };
  }

  #watched(replica: Replica): Watched {
    let watched = this.#replicas.get(replica);
    if (watched === undefined || watched.incarnation !== replica.incarnation) {
      watched = { incarnation: replica.incarnation, prompts: 0, lastObservedMs: Number.NEGATIVE_INFINITY };
      this.#replicas.set(replica, watched);
    }
    return watched;
  }
}
