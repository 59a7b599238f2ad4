import type { SimEvent } from "./simEvent.ts";

/**
 * Events by (time, priority, order of queueing): a binary heap whose keys lie in typed arrays, as comparing them is most
 * of the work. The order is total, so a run does not depend on how the heap is built.
 */
export class EventQueue<World> {
  readonly #events: SimEvent<World>[] = [];
  #atMs = new Float64Array(64);
  #priority = new Int32Array(64);
  #sequence = new Float64Array(64);
  #queued = 0;

  get size(): number {
    return this.#events.length;
  }

  /** Events queued since the start. */
  get queued(): number {
    return this.#queued;
  }

  get nextMs(): number {
    return this.#events.length === 0 ? Number.POSITIVE_INFINITY : this.#atMs[0]!;
  }

  push(event: SimEvent<World>): void {
    const { atMs, priority } = event;
    if (!Number.isFinite(atMs)) throw new RangeError(`an event cannot happen at ${atMs} ms`);
    if (this.#events.length === this.#atMs.length) this.#grow();
    const sequence = this.#queued++;
    let at = this.#events.length;
    this.#events.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isAfter(parent, atMs, priority, sequence)) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#put(at, event, atMs, priority, sequence);
  }

  /** Null: no event is left. */
  pop(): SimEvent<World> | null {
    const events = this.#events;
    const first = events[0];
    if (first === undefined) return null;
    const size = events.length - 1;
    const last = events[size]!;
    const atMs = this.#atMs[size]!;
    const priority = this.#priority[size]!;
    const sequence = this.#sequence[size]!;
    events.length = size;
    if (size === 0) return first;
    let at = 0;
    for (let child = 1; child < size; child = 2 * at + 1) {
      const right = child + 1;
      if (right < size && this.#isAfter(child, this.#atMs[right]!, this.#priority[right]!, this.#sequence[right]!))
        child = right;
      if (this.#isAfter(child, atMs, priority, sequence)) break;
      this.#move(child, at);
      at = child;
    }
    this.#put(at, last, atMs, priority, sequence);
    return first;
  }

  /** Whether the event at this place comes after one with these keys. */
  #isAfter(at: number, atMs: number, priority: number, sequence: number): boolean {
    const ownMs = this.#atMs[at]!;
    if (ownMs !== atMs) return ownMs > atMs;
    const ownPriority = this.#priority[at]!;
    return ownPriority === priority ? this.#sequence[at]! > sequence : ownPriority > priority;
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#events[from]!, this.#atMs[from]!, this.#priority[from]!, this.#sequence[from]!);
  }

  #put(at: number, event: SimEvent<World>, atMs: number, priority: number, sequence: number): void {
    this.#events[at] = event;
    this.#atMs[at] = atMs;
    this.#priority[at] = priority;
    this.#sequence[at] = sequence;
  }

  #grow(): void {
    const size = this.#atMs.length * 2;
    const [atMs, priority, sequence] = [this.#atMs, this.#priority, this.#sequence];
    this.#atMs = new Float64Array(size);
    this.#priority = new Int32Array(size);
    this.#sequence = new Float64Array(size);
    this.#atMs.set(atMs);
    this.#priority.set(priority);
    this.#sequence.set(sequence);
  }
}
