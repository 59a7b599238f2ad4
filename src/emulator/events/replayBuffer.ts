export interface NumberedBatch {
  readonly seq: number;
  readonly payload: Buffer;
}

/** The last batches of one rank, for who missed them. */
export class ReplayBuffer {
  readonly #capacity: number;
  readonly #batches: NumberedBatch[] = [];
  /** Where the oldest is; the array is a ring once it is full. */
  #first = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  add(batch: NumberedBatch): void {
    if (this.#capacity === 0) return;
    if (this.#batches.length < this.#capacity) {
      this.#batches.push(batch);
      return;
    }
    this.#batches[this.#first] = batch;
    this.#first = (this.#first + 1) % this.#capacity;
  }

  /** Those from a number on, oldest first, as they are now. */
  from(seq: bigint): readonly NumberedBatch[] {
    const inOrder = [...this.#batches.slice(this.#first), ...this.#batches.slice(0, this.#first)];
    return inOrder.filter((batch) => BigInt(batch.seq) >= seq);
  }
}
