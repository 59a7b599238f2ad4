import type { Replica } from "#src/fleet/replica.ts";
import type { Placement } from "./placement.ts";

/** Placements that have not ended, and whom to tell when their replica goes. The ledger bounds their number. */
export class LivePlacements {
  readonly #onLost = new Map<Placement, (() => void) | null>();

  get size(): number {
    return this.#onLost.size;
  }

  add(placement: Placement, onLost: (() => void) | null): void {
    this.#onLost.set(placement, onLost);
  }

  remove(placement: Placement): void {
    this.#onLost.delete(placement);
  }

  /** The replica left or restarted. One that has seen a token may still get its answer; the others never will. */
  replicaLost(replica: Replica): void {
    const lost = [...this.#onLost].filter(
      ([placement]) => placement.replica === replica && Number.isNaN(placement.firstTokenMs),
    );
    for (const [, onLost] of lost) onLost?.();
  }
}
