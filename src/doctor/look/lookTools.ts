import type { Timers } from "#src/determinism/timers.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineClient } from "#src/engines/engineClient.ts";
import type { StreamSockets } from "#src/engines/events/stream/sockets.ts";
import type { Tokenizers } from "../tokenizers.ts";

/** What looking at an engine takes. */
export interface LookTools {
  readonly timers: Timers;
  readonly open: (endpoint: EngineEndpoint) => EngineClient;
  /** Now, since 1970. */
  readonly wallMs: () => number;
  readonly sockets: StreamSockets;
  readonly tokenizers: Tokenizers;
  readonly limits: LookLimits;
  /** Words that no prompt had before, the same for all engines of one examination; null: nothing is generated. */
  readonly nonce: string | null;
}

export interface LookLimits {
  /** Until a publisher has greeted, and until a replay has ended. */
  readonly eventMs: number;
  /** A completion, which may have to wait behind others. */
  readonly probeMs: number;
}

export const DEFAULT_LOOK_LIMITS: LookLimits = { eventMs: 3000, probeMs: 60_000 };
