import type { RouterError } from "#src/errors/routerError.ts";
import type { LegName } from "#src/scheduler/outcome.ts";
import type { StreamObserver } from "./streamObserver.ts";

/** One attempt under way: a leg, or the two legs of a pair. Its listener hears of its end exactly once, unless it was aborted. */
export interface Run {
  /** When its first leg was written; NaN before. */
  readonly sentMs: number;
  /** Of the answer that the client gets. */
  readonly status: number;
  readonly firstByteMs: number;
  readonly lastByteMs: number;
  /** Set where that is a stream of events. */
  readonly stream: StreamObserver | null;
  start(): void;
  /** Closes its connections, which makes the engines stop. The listener hears nothing more. */
  abort(): void;
  /** Aborts and reports. */
  fail(error: RouterError, leg: LegName): void;
}
