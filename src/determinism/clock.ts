/** Monotonic time in milliseconds. Passed in wherever a decision is made, so that decisions can be replayed. */
export interface Clock {
  nowMs(): number;
}

/** The process clock: monotonic, sub-millisecond. Only `cli`, `gateway`, `dispatch` and `emulator` may use it. */
export const processClock: Clock = { nowMs: () => performance.now() };

/** A clock that a test or the simulator moves by hand. */
export class ManualClock implements Clock {
  #nowMs: number;

  constructor(startMs = 0) {
    this.#nowMs = startMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  advance(byMs: number): void {
    this.#nowMs += byMs;
  }

  set(nowMs: number): void {
    this.#nowMs = nowMs;
  }
}
