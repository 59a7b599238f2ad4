/**
 * One direction of a port that transfers share: those under way, and those that placed requests will make once their
 * prompt is computed. Counts are exact; what is left of the bytes under way is what the port's rate leaves of them.
 */
export class Channel {
  readonly bytesPerMs: number;
  /** Links that use it; none: it can be forgotten. */
  links = 0;
  active = 0;
  promised = 0;
  promisedBytes = 0;
  #leftBytes = 0;
  #sinceMs = 0;
  #lastStartMs = Number.NEGATIVE_INFINITY;

  constructor(rateBytesPerMs: number) {
    this.bytesPerMs = rateBytesPerMs;
  }

  /** A transfer will begin at about `startMs`. */
  promise(bytes: number, startMs: number): void {
    this.promised++;
    this.promisedBytes += bytes;
    if (startMs > this.#lastStartMs) this.#lastStartMs = startMs;
  }

  unpromise(bytes: number): void {
    this.promised--;
    this.promisedBytes -= bytes;
    if (this.promised === 0) this.#lastStartMs = Number.NEGATIVE_INFINITY;
  }

  begin(bytes: number, nowMs: number): void {
    this.#leftBytes = this.leftBytes(nowMs) + bytes;
    this.#sinceMs = nowMs;
    this.active++;
  }

  end(nowMs: number): void {
    this.active--;
    this.#leftBytes = this.active === 0 ? 0 : this.leftBytes(nowMs);
    this.#sinceMs = nowMs;
  }

  /** Of the transfers under way. */
  leftBytes(atMs: number): number {
    return Math.max(0, this.#leftBytes - this.bytesPerMs * Math.max(0, atMs - this.#sinceMs));
  }

  /**
   * Bytes of others that pass while `bytes` more, begun at `startMs`, do. Under way: each transfer gets an equal share
   * until it is through, so of each no more than `bytes` passes meanwhile. Promised: taken as spread evenly over the time
   * until the last of them begins.
   */
  othersBytes(bytes: number, startMs: number, nowMs: number): number {
    const underWay = this.active === 0 ? 0 : Math.min(this.leftBytes(startMs), this.active * bytes);
    if (this.promised === 0) return underWay;
    const ownMs = bytes / this.bytesPerMs;
    const overMs = Math.max(ownMs, this.#lastStartMs - nowMs);
    const meanwhile = this.promisedBytes * Math.min(1, ownMs / overMs);
    return underWay + Math.min(meanwhile, this.promised * bytes);
  }
}
