import type { Replica } from "#src/fleet/replica.ts";
import type { Placement } from "./placement.ts";

/**
 * Placements that have not ended, and whom to tell when their replica goes. The ledger bounds their number.
 *
 * A list in which each knows its place, not a map: a map that changes with every request leaves tables behind by which
 * dead placements outlive the collections of young objects.
 */
export class LivePlacements {
  readonly #live: Placement[] = [];

  get size(): number {
    return this.#live.length;
  }

  add(placement: Placement, onLost: (() => void) | null): void {
    placement.onLost = onLost;
    placement.liveAt = this.#live.push(placement) - 1;
  }

  remove(placement: Placement): void {
    const at = placement.liveAt;
    const last = this.#live.at(-1);
    if (at < 0 || last === undefined) return;
    this.#live[at] = last;
    last.liveAt = at;
    this.#live.pop();
    placement.liveAt = -1;
    placement.onLost = null;
  }

  /** The replica left or restarted. One that has seen a token may still get its answer; the others never will. */
  replicaLost(replica: Replica): void {
    const lost = this.#live.filter(
      (placement) => placement.replica === replica && Number.isNaN(placement.firstTokenMs),
    );
    for (const { onLost } of lost) onLost?.();
  }
}
