import type { ManualClock } from "./clock.ts";

/** Forgets a timer that has not run yet; harmless afterwards. */
export type Cancel = () => void;

/** One-shot timers. Passed in where something recurs or times out, so that tests move time instead of waiting. */
export interface Timers {
  after(delayMs: number, run: () => void): Cancel;
}

/** The process's timers. They do not keep the process alive. */
export const processTimers: Timers = {
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

interface Pending {
  readonly dueMs: number;
  readonly run: () => void;
}

/** Timers that run when a test moves the clock. */
export class ManualTimers implements Timers {
  readonly #clock: ManualClock;
  readonly #pending = new Set<Pending>();

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  get pending(): number {
    return this.#pending.size;
  }

  after(delayMs: number, run: () => void): Cancel {
    const entry = { dueMs: this.#clock.nowMs() + Math.max(0, delayMs), run };
    this.#pending.add(entry);
    return () => void this.#pending.delete(entry);
  }

  /** Moves the clock, running each timer at its own time; promises settle between two timers. */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.#clock.nowMs() + byMs;
    await settled();
    for (let next = this.#next(untilMs); next !== null; next = this.#next(untilMs)) {
      this.#pending.delete(next);
      this.#clock.set(Math.max(this.#clock.nowMs(), next.dueMs));
      next.run();
      await settled();
    }
    this.#clock.set(untilMs);
  }

  #next(untilMs: number): Pending | null {
    let first: Pending | null = null;
    for (const entry of this.#pending) {
      if (entry.dueMs <= untilMs && (first === null || entry.dueMs < first.dueMs)) first = entry;
    }
    return first;
  }
}

/** Resolves once every promise chain that needs no I/O has run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
