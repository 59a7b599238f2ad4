import type { RouterError } from "#src/errors/routerError.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { AttemptOutcome, Usage } from "#src/scheduler/outcome.ts";
import type { Downstream } from "./downstream.ts";
import type { HeaderList } from "./headers.ts";
import type { SplitCall } from "./pair/splitCall.ts";
import type { LegLimits } from "./legLimits.ts";

/** One request to be carried, from the gateway. */
export interface Call<P> {
  readonly request: RouteRequest;
  readonly method: string;
  /** Origin form, query included. */
  readonly target: string;
  /** As the client sent them; what must not reach an engine is dropped here. */
  readonly headers: HeaderList;
  /** The bytes for this placement: the client's body with what has to differ spliced in. */
  readonly body: (placement: P) => readonly Buffer[];
  /** How it is split, for a placement on a pair. Absent: it cannot be, and gets no such placement. */
  readonly split?: SplitCall<P>;
  readonly downstream: Downstream;
  readonly limits: LegLimits;
  /** The client asked for a stream of events. */
  readonly streamed: boolean;
  /** The router wrote `include_usage` into the request: its chunk is not the client's. */
  readonly stripUsage: boolean;
  /** Headers of the router's own for the answer. */
  readonly answerHeaders?: (placement: P, status: number) => readonly string[];
  /** The event that ends a stream which its engine has broken; by default OpenAI's error object. */
  readonly errorEvent?: (error: RouterError) => string;
  /** Each attempt, as it ends: for logs and metrics. */
  readonly onAttempt?: (attempt: Attempt<P>) => void;
  /** Events of the stream that came with one read; `gapMs` after the read before, NaN for the first. */
  readonly onEvents?: (placement: P, events: number, gapMs: number) => void;
}

/** One attempt that has ended. Times are on the carrier's clock; NaN: it did not come to that. */
export interface Attempt<P> {
  readonly placement: P;
  readonly number: number;
  readonly outcome: AttemptOutcome;
  readonly error: RouterError | null;
  readonly status: number;
  readonly sentMs: number;
  readonly firstByteMs: number;
  readonly firstTokenMs: number;
  readonly lastByteMs: number;
  readonly events: number;
  /** Another attempt follows. */
  readonly retried: boolean;
}

/** How a call ended. With an error and nothing started, the error is still to be written to the client. */
export interface CallResult<P> {
  readonly error: RouterError | null;
  /** Of the engine; 0: none answered. */
  readonly status: number;
  readonly usage: Usage;
  readonly attempts: number;
  /** No socket holds bytes of the request any more. False: they may still be on their way. */
  readonly bodyFree: boolean;
  readonly last: Attempt<P> | null;
}
