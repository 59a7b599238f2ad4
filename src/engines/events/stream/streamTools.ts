import type { Clock } from "../../../determinism/clock.ts";
import type { Random } from "../../../determinism/random.ts";
import type { Timers } from "../../../determinism/timers.ts";
import type { ByteBudget } from "./inbox.ts";
import type { StreamSockets } from "./sockets.ts";
import type { Turns } from "./turns.ts";

export interface StreamSettings {
  /** From opening the subscription to the engine's greeting. */
  readonly connectLimitMs: number;
  /** Longest silence in a replay. */
  readonly answerLimitMs: number;
  /** Silence of the subscription after which the engine is asked whether there was something to hear. */
  readonly checkAfterMs: number;
  /** Delay before connecting anew; it doubles up to the maximum. */
  readonly connectFirstDelayMs: number;
  readonly connectMaxDelayMs: number;
  /** Delay before another attempt at a replay that failed; it doubles up to the maximum. */
  readonly rebuildFirstDelayMs: number;
  readonly rebuildMaxDelayMs: number;
  /** Messages that each inbox of a stream may hold: the default replay window of the engines, and room to spare. */
  readonly maxQueuedMessages: number;
}

export const DEFAULT_STREAM_SETTINGS: StreamSettings = {
  connectLimitMs: 5000,
  answerLimitMs: 5000,
  checkAfterMs: 10_000,
  connectFirstDelayMs: 250,
  connectMaxDelayMs: 10_000,
  rebuildFirstDelayMs: 5000,
  rebuildMaxDelayMs: 300_000,
  maxQueuedMessages: 16_384,
};

/** What the streams of a monitor share. */
export interface StreamTools {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly turns: Turns;
  readonly budget: ByteBudget;
  readonly sockets: StreamSockets;
  readonly settings: StreamSettings;
}
