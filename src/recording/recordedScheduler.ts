import type { RouterError } from "#src/errors/routerError.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { AttemptOutcome, Usage } from "#src/scheduler/outcome.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import { Scheduler, type SchedulerOptions } from "#src/scheduler/scheduler.ts";
import type { Settle, SubmitOptions, Ticket } from "#src/scheduler/ticket.ts";
import type { Recorder } from "./write/recorder.ts";

/** The scheduler, with everything that goes in and comes out written down. */
export class RecordedScheduler extends Scheduler {
  readonly #recorder: Recorder;

  constructor(options: SchedulerOptions, recorder: Recorder) {
    super(options);
    this.#recorder = recorder;
  }

  override submit(request: RouteRequest, nowMs: number, settle: Settle, options: SubmitOptions = {}): Ticket {
    const recorder = this.#recorder;
    if (!recorder.enter()) return super.submit(request, nowMs, settle, options);
    try {
      const number = recorder.submit(request, nowMs, options);
      let placed: Placement | null = null;
      const settled = (result: Placement | RouterError): void => {
        recorder.settled(number, result);
        if ("replica" in result) placed = result;
        const before = recorder.tell();
        try {
          settle(result);
        } finally {
          recorder.told(before);
        }
      };
      const { onLost } = options;
      if (onLost === undefined) return super.submit(request, nowMs, settled, options);
      const lost: typeof onLost = (why, leg) => {
        if (placed !== null) recorder.lost(placed);
        const before = recorder.tell();
        try {
          onLost(why, leg);
        } finally {
          recorder.told(before);
        }
      };
      return super.submit(request, nowMs, settled, { ...options, onLost: lost });
    } finally {
      recorder.leave();
    }
  }

  override cancel(ticket: Ticket, nowMs: number): void {
    if (!this.#recorder.enter()) return super.cancel(ticket, nowMs);
    this.#recorder.cancel(ticket.sequence, nowMs);
    try {
      super.cancel(ticket, nowMs);
    } finally {
      this.#recorder.leave();
    }
  }

  override prefilled(placement: Placement, usage: Usage | null, nowMs: number): void {
    if (!this.#recorder.enter()) return super.prefilled(placement, usage, nowMs);
    this.#recorder.prefilled(placement, usage, nowMs);
    try {
      super.prefilled(placement, usage, nowMs);
    } finally {
      this.#recorder.leave();
    }
  }

  override firstToken(placement: Placement, nowMs: number): void {
    if (!this.#recorder.enter()) return super.firstToken(placement, nowMs);
    this.#recorder.firstToken(placement, nowMs);
    try {
      super.firstToken(placement, nowMs);
    } finally {
      this.#recorder.leave();
    }
  }

  override progress(placement: Placement, outputTokens: number, nowMs: number): void {
    if (!this.#recorder.enter()) return super.progress(placement, outputTokens, nowMs);
    this.#recorder.progress(placement, outputTokens, nowMs);
    try {
      super.progress(placement, outputTokens, nowMs);
    } finally {
      this.#recorder.leave();
    }
  }

  override heldUp(placement: Placement): void {
    if (!this.#recorder.enter()) return super.heldUp(placement);
    this.#recorder.heldUp(placement);
    try {
      super.heldUp(placement);
    } finally {
      this.#recorder.leave();
    }
  }

  override finish(placement: Placement, outcome: AttemptOutcome, nowMs: number): void {
    if (!this.#recorder.enter()) return super.finish(placement, outcome, nowMs);
    this.#recorder.finish(placement, outcome, nowMs);
    try {
      super.finish(placement, outcome, nowMs);
    } finally {
      this.#recorder.leave();
    }
  }

  override tick(nowMs: number): void {
    if (!this.#recorder.enter()) return super.tick(nowMs);
    this.#recorder.timed("wake", nowMs);
    try {
      super.tick(nowMs);
    } finally {
      this.#recorder.leave();
    }
  }

  override shutdown(): void {
    if (!this.#recorder.enter()) return super.shutdown();
    this.#recorder.shutdown();
    try {
      super.shutdown();
    } finally {
      this.#recorder.leave();
    }
  }
}
