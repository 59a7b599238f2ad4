import type { Sequence } from "./sequence.ts";

/** What waits for a place in the batch, in order. Linked through the sequences, so leaving it is O(1) anywhere. */
export class WaitingQueue<Owner> {
  readonly #byPriority: boolean;
  #first: Sequence<Owner> | null = null;
  #last: Sequence<Owner> | null = null;
  #length = 0;

  constructor(byPriority: boolean) {
    this.#byPriority = byPriority;
  }

  get first(): Sequence<Owner> | null {
    return this.#first;
  }

  get length(): number {
    return this.#length;
  }

  /** A new arrival: behind everything that is not less urgent. */
  add(sequence: Sequence<Owner>): void {
    let before = this.#last;
    if (this.#byPriority) while (before !== null && sequence.priority < before.priority) before = before.before;
    this.#insert(sequence, before);
  }

  /** A preempted one: before everything that came later or is less urgent. */
  putBack(sequence: Sequence<Owner>): void {
    let before: Sequence<Owner> | null = null;
    for (let next = this.#first; next !== null && this.#precedes(next, sequence); next = next.after) before = next;
    this.#insert(sequence, before);
  }

  remove(sequence: Sequence<Owner>): void {
    if (sequence.before === null) this.#first = sequence.after;
    else sequence.before.after = sequence.after;
    if (sequence.after === null) this.#last = sequence.before;
    else sequence.after.before = sequence.before;
    sequence.before = null;
    sequence.after = null;
    this.#length--;
  }

  #precedes(a: Sequence<Owner>, b: Sequence<Owner>): boolean {
    if (this.#byPriority && a.priority !== b.priority) return a.priority < b.priority;
    return a.number < b.number;
  }

  #insert(sequence: Sequence<Owner>, before: Sequence<Owner> | null): void {
    const after: Sequence<Owner> | null = before === null ? this.#first : before.after;
    sequence.before = before;
    sequence.after = after;
    if (before === null) this.#first = sequence;
    else before.after = sequence;
    if (after === null) this.#last = sequence;
    else after.before = sequence;
    this.#length++;
  }
}
