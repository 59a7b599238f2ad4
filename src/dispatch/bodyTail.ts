/**
 * The last bytes of a body that passes by, for its usage stands at its end. 8 KiB hold the usage of every engine with
 * what follows it (vLLM's `kv_transfer_params`, the rest of a `response.completed`).
 */
const TAIL_BYTES = 8192;

/** Keeps the last bytes of what is appended. */
export class BodyTail {
  #bytes: Buffer | null = null;
  #used = 0;

  append(bytes: Buffer, start: number, end: number): void {
    const from = Math.max(start, end - TAIL_BYTES);
    const length = end - from;
    // Most answers come in one piece; only for a second one is there room to grow.
    this.#bytes ??= Buffer.allocUnsafe(length);
    if (this.#used + length > this.#bytes.length) this.#makeRoom();
    bytes.copy(this.#bytes, this.#used, from, end);
    this.#used += length;
  }

  /** Twice what is kept, so that moving is rare. */
  #makeRoom(): void {
    const old = this.#bytes;
    if (old === null) return;
    const from = Math.max(0, this.#used - TAIL_BYTES);
    if (old.length < 2 * TAIL_BYTES) this.#bytes = Buffer.allocUnsafe(2 * TAIL_BYTES);
    old.copy(this.#bytes ?? old, 0, from, this.#used);
    this.#used -= from;
  }

  /** Latin-1: whatever it holds, positions are bytes and the keys looked for are ASCII. */
  text(): string {
    return this.#bytes === null ? "" : this.#bytes.toString("latin1", Math.max(0, this.#used - TAIL_BYTES), this.#used);
  }
}
