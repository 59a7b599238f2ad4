/** Service longer ago than a few of these no longer matters to the rate. */
const MEMORY_MS = 10_000;
/** Less remembered waiting than this says too little. */
const ENOUGH_MS = 2_000;

/**
 * Tokens bound per millisecond while somebody waits: what the replicas can take. Time in which nobody waits says nothing
 * of that and does not count.
 */
export class BusyRate {
  #tokens = 0;
  #busyMs = 0;
  #atMs = Number.NaN;

  /** Whether somebody waits. */
  get busy(): boolean {
    return !Number.isNaN(this.#atMs);
  }

  /** Somebody begins to wait; before, nobody did. */
  begins(nowMs: number): void {
    this.#atMs = nowMs;
  }

  /** The last one has left. */
  ends(nowMs: number): void {
    this.#pass(nowMs);
    this.#atMs = Number.NaN;
  }

  bound(tokens: number, nowMs: number): void {
    if (Number.isNaN(this.#atMs)) return;
    this.#pass(nowMs);
    this.#tokens += tokens;
  }

  /** Null: too little was seen to tell. */
  perMs(nowMs: number): number | null {
    this.#pass(nowMs);
    return this.#busyMs < ENOUGH_MS || this.#tokens <= 0 ? null : this.#tokens / this.#busyMs;
  }

  #pass(nowMs: number): void {
    if (!(nowMs > this.#atMs)) return;
    const elapsedMs = nowMs - this.#atMs;
    const kept = Math.exp(-elapsedMs / MEMORY_MS);
    this.#tokens *= kept;
    this.#busyMs = this.#busyMs * kept + MEMORY_MS * (1 - kept);
    this.#atMs = nowMs;
  }
}
