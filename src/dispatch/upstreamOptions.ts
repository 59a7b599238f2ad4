import type { Clock } from "#src/determinism/clock.ts";
import type { Deadlines } from "./deadlines.ts";
import type { EngineTls } from "./engineConnection.ts";
import type { HeadLimits } from "./httpParser.ts";

/** How connections to engines are kept. */
export interface UpstreamOptions {
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  /** Per engine. */
  readonly maxConnections: number;
  /** Requests that wait for a connection to one engine. */
  readonly maxWaiting: number;
  /** Below the engine's own, so that it is the router that closes (uvicorn: 5 s). */
  readonly idleMs: number;
  readonly headLimits: HeadLimits;
  readonly tls: EngineTls;
}

export const UPSTREAM_DEFAULTS = {
  maxConnections: 4096,
  maxWaiting: 1024,
  idleMs: 4000,
  headLimits: { maxHeaderBytes: 65_536, maxHeaderCount: 200 },
  tls: {},
} as const;
