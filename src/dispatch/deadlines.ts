import type { Clock } from "#src/determinism/clock.ts";
import type { Timers } from "#src/determinism/timers.ts";

/** Something that must not last for ever. `deadlineMs` may move at any time, which costs an assignment. */
export interface Deadline {
  /** On the clock of the `Deadlines` that watch it; Infinity: none for now. */
  deadlineMs: number;
  /** Called once per passing; it moves the deadline or stops being watched. */
  onDeadline(nowMs: number): void;
}

/**
 * All time limits of the data path. Arming a timer for each event of each stream would cost more than forwarding the
 * event, so limits are plain numbers, looked at a few times a second; they are late by at most the granularity.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #granularityMs: number;
  readonly #watched = new Set<Deadline>();
  #armed = false;

  constructor(options: { clock: Clock; timers: Timers; granularityMs: number }) {
    this.#clock = options.clock;
    this.#timers = options.timers;
    this.#granularityMs = options.granularityMs;
  }

  get size(): number {
    return this.#watched.size;
  }

  watch(deadline: Deadline): void {
    this.#watched.add(deadline);
    this.#arm();
  }

  unwatch(deadline: Deadline): void {
    this.#watched.delete(deadline);
  }

  #tick = (): void => {
    this.#armed = false;
    const nowMs = this.#clock.nowMs();
    for (const deadline of this.#watched) {
      if (deadline.deadlineMs > nowMs) continue;
      deadline.deadlineMs = Number.POSITIVE_INFINITY;
      deadline.onDeadline(nowMs);
    }
    if (this.#watched.size > 0) this.#arm();
  };

  #arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    this.#timers.after(this.#granularityMs, this.#tick);
  }
}
