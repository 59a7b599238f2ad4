import type { Clock } from "#src/determinism/clock.ts";
import type { Cancel, Timers } from "#src/determinism/timers.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import type { Scheduler } from "#src/scheduler/scheduler.ts";

const FLEET_EVERY_MS = 1_000;

/** The one timer that makes time pass for fleet and scheduler, which have none of their own. */
export class Ticker {
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #fleet: Fleet;
  readonly #scheduler: Scheduler;
  #fleetDueMs: number;
  #dueMs = Number.POSITIVE_INFINITY;
  #cancel: Cancel = () => undefined;
  #stopped = false;

  constructor(clock: Clock, timers: Timers, fleet: Fleet, scheduler: Scheduler) {
    this.#clock = clock;
    this.#timers = timers;
    this.#fleet = fleet;
    this.#scheduler = scheduler;
    this.#fleetDueMs = clock.nowMs() + FLEET_EVERY_MS;
    this.arm();
  }

  /** To be called when the scheduler may have to wake earlier than it said: when somebody began to wait. */
  arm(): void {
    if (this.#stopped) return;
    const dueMs = Math.min(this.#fleetDueMs, this.#scheduler.nextWakeMs() ?? Number.POSITIVE_INFINITY);
    if (dueMs >= this.#dueMs) return;
    this.#cancel();
    this.#dueMs = dueMs;
    this.#cancel = this.#timers.after(Math.max(1, dueMs - this.#clock.nowMs()), this.#tick);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #tick = (): void => {
    this.#dueMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.nowMs();
    if (nowMs >= this.#fleetDueMs) {
      this.#fleetDueMs = nowMs + FLEET_EVERY_MS;
      this.#fleet.tick(nowMs);
    }
    const wakeMs = this.#scheduler.nextWakeMs();
    if (wakeMs !== null && wakeMs <= nowMs) this.#scheduler.tick(nowMs);
    this.arm();
  };
}
