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
