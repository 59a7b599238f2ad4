import type { Replica } from "#src/fleet/replica.ts";
import type { LegName } from "./outcome.ts";
import type { LostBy, Placement } from "./placement.ts";

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

  add(placement: Placement, onLost: ((why: LostBy, leg: LegName) => void) | null): void {
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
    for (const placement of this.#withoutToken(replica)) placement.onLost?.("left", legOn(replica, placement));
  }

  /** The replica is silent: those that `hopeless` holds for are told. */
  replicaSilent(replica: Replica, hopeless: (placement: Placement) => boolean): void {
    for (const placement of this.#withoutToken(replica))
      if (!placement.finished && hopeless(placement)) placement.onLost?.("silent", legOn(replica, placement));
  }

  /** A copy: whoever is told may end its placement at once. */
  #withoutToken(replica: Replica): readonly Placement[] {
    return this.#live.filter((placement) => Number.isNaN(placement.firstTokenMs) && needs(placement, replica));
  }
}

/** A prefill side is needed until it has answered, and on as long as its KV is not fetched. */
function needs({ replica: answering, prefill }: Placement, replica: Replica): boolean {
  if (answering === replica) return true;
  return prefill !== null && prefill.replica === replica && (!prefill.prefilled || prefill.leaseMs !== null);
}

function legOn(replica: Replica, placement: Placement): LegName {
  return placement.replica === replica ? "decode" : "prefill";
}
