/** An entry's place in its queue; kept by whoever may have to take it out again. */
export interface Queued<T> {
  readonly value: T;
  readonly key: number;
  /** Entries of equal key leave in the order they came. */
  readonly sequence: number;
  /** Position in the heap; -1 once it has left. Only the queue writes it. */
  at: number;
}

function before<T>(a: Queued<T>, b: Queued<T>): boolean {
  return a.key < b.key || (a.key === b.key && a.sequence < b.sequence);
}

/** A binary heap, least key first, from whose middle entries can be taken. All but `first` are O(log n). */
export class PriorityQueue<T> {
  readonly #heap: Queued<T>[] = [];

  get size(): number {
    return this.#heap.length;
  }

  get first(): Queued<T> | null {
    return this.#heap[0] ?? null;
  }

  /** Any of them: the least at 0, greater ones behind it. */
  at(place: number): Queued<T> | undefined {
    return this.#heap[place];
  }

  /** In no particular order. */
  values(): T[] {
    return this.#heap.map(({ value }) => value);
  }

  push(value: T, key: number, sequence: number): Queued<T> {
    const entry: Queued<T> = { value, key, sequence, at: this.#heap.length };
    this.#heap.push(entry);
    this.#rise(entry);
    return entry;
  }

  /** Harmless for an entry that has left. */
  remove(entry: Queued<T>): void {
    const { at } = entry;
    if (at < 0) return;
    const last = this.#heap.pop()!;
    entry.at = -1;
    if (last === entry) return;
    this.#heap[at] = last;
    last.at = at;
    this.#rise(last);
    this.#sink(last);
  }

  #rise(entry: Queued<T>): void {
    while (entry.at > 0) {
      const parent = this.#heap[(entry.at - 1) >> 1]!;
      if (!before(entry, parent)) return;
      this.#swap(entry, parent);
    }
  }

  #sink(entry: Queued<T>): void {
    for (;;) {
      const left = this.#heap[2 * entry.at + 1];
      const right = this.#heap[2 * entry.at + 2];
      if (left === undefined) return;
      const least = right !== undefined && before(right, left) ? right : left;
      if (!before(least, entry)) return;
      this.#swap(entry, least);
    }
  }

  #swap(a: Queued<T>, b: Queued<T>): void {
    const { at } = a;
    this.#heap[b.at] = a;
    a.at = b.at;
    this.#heap[at] = b;
    b.at = at;
  }
}
