import type { KvEventBatch } from "../kvEvent.ts";

/**
 * Work of one slice, in units of about a microsecond. Counted, not timed, so that the same messages are always told in
 * the same slices.
 */
export const UNITS_A_SLICE = 2000;

/** A batch costs one for itself and one for each of its blocks. */
export function unitsOf({ events }: KvEventBatch): number {
  let units = 1;
  for (const event of events) units += event.kind === "cleared" ? 1 : event.engineHashes.length;
  return units;
}

/** Does a limited piece of work; true if there is more. */
export type Slice = () => boolean;

/**
 * Lets many streams work on one event loop: one slice a turn of the loop for all of them together, in rotation, so that
 * a flood from a hundred engines delays other I/O by a slice and not by a hundred.
 */
export class Turns {
  readonly #waiting = new Set<Slice>();
  readonly #inNextTurn: (run: () => void) => void;
  #scheduled = false;

  constructor(inNextTurn: (run: () => void) => void = setImmediate) {
    this.#inNextTurn = inNextTurn;
  }

  /** Runs the slice in a later turn, and again until there is no more. Asking twice is asking once. */
  ask(slice: Slice): void {
    this.#waiting.add(slice);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#inNextTurn(() => this.#turn());
  }

  #turn(): void {
    this.#scheduled = false;
    const [slice] = this.#waiting;
    if (slice === undefined) return;
    this.#waiting.delete(slice);
    if (slice()) this.#waiting.add(slice);
    if (this.#waiting.size > 0) this.#schedule();
  }
}
