import { LIFECYCLE_LIMITS, transition } from "./lifecycle.ts";
import type { Lifecycle, LifecycleEvent, LifecycleLimits } from "./lifecycle.ts";

/** First hold after a 429/503 that names no `Retry-After`; it doubles with each further one in a row. */
const HOLD_BASE_MS = 250;
/** One that asks to be tried again at once must not be asked in a loop. */
const HOLD_MIN_MS = 50;
/** An engine may ask for less than this; what it asks beyond is not believed. */
const HOLD_MAX_MS = 30_000;
/** A token or an answer seen within this time proves life, whatever the health route does. */
const ALIVE_AFTER_SIGN_MS = 15_000;

/** A 429 or 503 of an engine. */
export interface Refusal {
  /** Null: it did not say for how long. */
  readonly retryAfterMs: number | null;
  /** Requests of ours that it had besides this one. */
  readonly others: number;
  /** When the refused request was placed there. */
  readonly boundMs: number;
}

/** A replica's lifecycle, and how long it asked to be left alone. Pure: time is an argument. */
export class Health {
  #lifecycle: Lifecycle;
  readonly #limits: LifecycleLimits;
  #heldUntilMs = Number.NEGATIVE_INFINITY;
  #busyInRow = 0;
  #lastSignMs = Number.NEGATIVE_INFINITY;
  #window = Number.POSITIVE_INFINITY;
  #refusedMs = Number.NEGATIVE_INFINITY;
  readonly #onState: (lifecycle: Lifecycle, nowMs: number) => void;

  /** `onState` is told of each change of the state's name, and of why a replica is unreachable. */
  constructor(
    nowMs: number,
    limits: LifecycleLimits = LIFECYCLE_LIMITS,
    onState: (lifecycle: Lifecycle, nowMs: number) => void = () => undefined,
  ) {
    this.#lifecycle = { state: "probing", sinceMs: nowMs };
    this.#limits = limits;
    this.#onState = onState;
  }

  get lifecycle(): Lifecycle {
    return this.#lifecycle;
  }

  /** Until when the engine asked for no more requests (429/503); in the past: not held. */
  get heldUntilMs(): number {
    return this.#heldUntilMs;
  }

  /** A health probe got no answer in time. A replica whose tokens flow, or that answers, is alive all the same: it is in a long prefill. */
  hung(nowMs: number): void {
    this.apply({ kind: "probe_hung", alive: nowMs - this.#lastSignMs < ALIVE_AFTER_SIGN_MS }, nowMs);
  }

  /**
   * Requests of ours that it has shown to take at a time; unlimited until it refuses one. Falls to what it had when it
   * refused and grows by one per round of answers, as TCP's congestion window does: it finds slots nobody told us of.
   */
  get window(): number {
    return Math.floor(this.#window);
  }

  held(nowMs: number): boolean {
    return nowMs < this.#heldUntilMs;
  }

  /** Whether a request may go there: ready, or quarantined with its time up and no trial under way. */
  routable(nowMs: number): boolean {
    const now = this.#lifecycle;
    return now.state === "ready" || (now.state === "quarantined" && nowMs >= now.untilMs);
  }

  apply(event: LifecycleEvent, nowMs: number): Lifecycle {
    const before = this.#lifecycle;
    const now = transition(before, event, nowMs, this.#limits);
    this.#lifecycle = now;
    // An operator looks elsewhere for a process that is gone than for one that hangs.
    const otherCause = now.state === "unreachable" && before.state === "unreachable" && now.cause !== before.cause;
    if (now.state !== before.state || otherCause) this.#onState(now, nowMs);
    return now;
  }

  /** A request was placed. True: it is the one trial of a replica coming out of quarantine. */
  bound(nowMs: number): boolean {
    const before = this.#lifecycle;
    return before.state === "quarantined" && this.apply({ kind: "request_bound" }, nowMs).state === "half_open";
  }

  tokenSeen(nowMs: number): void {
    this.#lastSignMs = nowMs;
  }

  answered(nowMs: number): void {
    this.#lastSignMs = nowMs;
    this.#busyInRow = 0;
    this.#heldUntilMs = Number.NEGATIVE_INFINITY;
    this.#window += 1 / this.#window;
    this.apply({ kind: "request_answered" }, nowMs);
  }

  failed(nowMs: number): void {
    this.apply({ kind: "request_failed" }, nowMs);
  }

  /** The engine answered 429 or 503. */
  busy({ retryAfterMs, others, boundMs }: Refusal, nowMs: number): void {
    this.#window = Math.max(1, others);
    // Sent before the last refusal was known: one burst into a full engine is one refusal.
    if (boundMs < this.#refusedMs) {
      this.#heldUntilMs = Math.max(this.#heldUntilMs, nowMs + Math.min(HOLD_MAX_MS, retryAfterMs ?? 0));
      return;
    }
    this.#refusedMs = nowMs;
    const holdMs = retryAfterMs ?? HOLD_BASE_MS * 2 ** Math.min(this.#busyInRow, 20);
    this.#busyInRow++;
    this.#heldUntilMs = Math.max(this.#heldUntilMs, nowMs + Math.min(HOLD_MAX_MS, Math.max(HOLD_MIN_MS, holdMs)));
    this.apply({ kind: "request_busy" }, nowMs);
  }

  /** The engine is another process now: what its predecessor answered says nothing of it. */
  restarted(nowMs: number): void {
    this.#busyInRow = 0;
    this.#heldUntilMs = Number.NEGATIVE_INFINITY;
    this.#lastSignMs = Number.NEGATIVE_INFINITY;
    this.#window = Number.POSITIVE_INFINITY;
    this.#refusedMs = Number.NEGATIVE_INFINITY;
    this.apply({ kind: "restarted" }, nowMs);
  }
}
