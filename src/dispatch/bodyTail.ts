/**
 * The last bytes of a body that passes by, for its usage stands at its end. 8 KiB hold the usage of every engine with
 * what follows it (vLLM's `kv_transfer_params`, the rest of a `response.completed`).
 */
const TAIL_BYTES = 8192;

/** Keeps the last bytes of what is appended; twice the size, so that moving is rare. */
export class BodyTail {
  #bytes: Buffer | null = null;
  #used = 0;

  append(bytes: Buffer, start: number, end: number): void {
    const from = Math.max(start, end - TAIL_BYTES);
    const length = end - from;
    const tail = (this.#bytes ??= Buffer.allocUnsafe(2 * TAIL_BYTES));
    if (this.#used + length > tail.length) {
      const kept = Math.min(this.#used, TAIL_BYTES);
      tail.copyWithin(0, this.#used - kept, this.#used);
      this.#used = kept;
    }
    bytes.copy(tail, this.#used, from, end);
    this.#used += length;
  }

  /** Latin-1: whatever it holds, positions are bytes and the keys looked for are ASCII. */
  text(): string {
    return this.#bytes === null ? "" : this.#bytes.toString("latin1", Math.max(0, this.#used - TAIL_BYTES), this.#used);
  }
}
