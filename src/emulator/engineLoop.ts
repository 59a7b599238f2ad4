import type { Clock } from "#src/determinism/clock.ts";
import type { Cancel, Timers } from "#src/determinism/timers.ts";
import type { BlockContent } from "./events/cacheEvent.ts";
import { EngineCore, type EngineCoreOptions, type StepOutcome } from "./scheduler/engineCore.ts";
import type { Sequence, SequenceSpec } from "./scheduler/sequence.ts";

/** Told what becomes of one sequence. Aborted ones are not heard of again. */
export interface SequenceSink {
  /** What its blocks hold, for an engine that publishes KV events. */
  readonly content?: BlockContent;
  token(): void;
  finished(): void;
}

export type RunningSequence = Sequence<SequenceSink>;

/** Behind by more than this (real time), the loop gives up catching up: the machine is too slow for the time scale. */
const MAX_LAG_MS = 200;
/** Steps delivered in one go before other work of the process gets its turn. */
const MAX_STEPS_PER_TURN = 64;

/**
 * Runs an `EngineCore` in real time: each step's results are delivered when the modelled GPU would have them. A step
 * begins where the one before should have ended, not when its timer fired, so late timers do not add up. One timer, and
 * none while idle.
 */
export class EngineLoop {
  readonly core: EngineCore<SequenceSink>;
  readonly #timeScale: number;
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #onBegin: () => void;
  readonly #onStep: (outcome: StepOutcome<SequenceSink>) => void;
  #outcome: StepOutcome<SequenceSink> | null = null;
  #dueMs = 0;
  #cancelTimer: Cancel | null = null;
  #stopped = false;

  constructor(
    options: EngineCoreOptions,
    environment: {
      readonly timeScale: number;
      readonly clock: Clock;
      readonly timers: Timers;
      /** Called when a step has begun: what it stores and evicts is settled then. */
      readonly onBegin?: () => void;
      /** Called as a step's results are delivered, before the sinks are. */
      readonly onStep?: (outcome: StepOutcome<SequenceSink>) => void;
    },
  ) {
    this.core = new EngineCore(options);
    this.#timeScale = environment.timeScale;
    this.#clock = environment.clock;
    this.#timers = environment.timers;
    this.#onBegin = environment.onBegin ?? (() => {});
    this.#onStep = environment.onStep ?? (() => {});
  }

  /** Modelled time. */
  get nowMs(): number {
    return this.#clock.nowMs() / this.#timeScale;
  }

  /** Queues sequences that belong together: they can be in the same step. */
  submit(specs: readonly SequenceSpec<SequenceSink>[]): RunningSequence[] {
    const nowMs = this.nowMs;
    const sequences = specs.map((spec) => this.core.submit(spec, nowMs));
    if (this.#outcome === null && !this.#stopped) {
      this.#begin(nowMs);
      this.#arm();
    }
    return sequences;
  }

  abort(sequence: RunningSequence): boolean {
    return this.core.abort(sequence);
  }

  /** Nothing is delivered any more. */
  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
  }

  #begin(atMs: number): void {
    const outcome = this.core.step(atMs);
    this.#onBegin();
    this.#outcome = outcome.tokens === 0 ? null : outcome;
    this.#dueMs = atMs + outcome.durationMs;
  }

  #arm(): void {
    if (this.#outcome === null || this.#stopped) return;
    const delayMs = this.#dueMs * this.#timeScale - this.#clock.nowMs();
    // Rounded up: a timer that fires early would have to be set again.
    this.#cancelTimer = this.#timers.after(Math.max(0, Math.ceil(delayMs)), () => this.#run());
  }

  #run(): void {
    for (let steps = 0; steps < MAX_STEPS_PER_TURN && this.#outcome !== null && !this.#stopped; steps++) {
      const lateMs = this.nowMs - this.#dueMs;
      if (lateMs < 0) break;
      this.#deliver(this.#outcome);
      this.#begin(lateMs * this.#timeScale > MAX_LAG_MS ? this.nowMs : this.#dueMs);
    }
    this.#arm();
  }

  #deliver(outcome: StepOutcome<SequenceSink>): void {
    this.#onStep(outcome);
    for (const sequence of outcome.emitted) if (sequence.state !== "aborted") sequence.owner.token();
    for (const sequence of outcome.finished) if (!this.#stopped) sequence.owner.finished();
  }
}
