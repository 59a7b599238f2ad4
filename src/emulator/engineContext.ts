import type { ResolvedOptions } from "./engineOptions.ts";
import type { FaultSwitch } from "./faults.ts";
import type { Incarnation } from "./incarnation.ts";
import type { EngineTokenizer } from "./tokens/engineTokenizer.ts";
import type { RecentEntries, ReceivedRequest, RequestRecord } from "./requestLog.ts";

/** What the routes of one engine share. */
export interface EngineContext {
  readonly options: ResolvedOptions;
  readonly tokenizer: EngineTokenizer;
  /** Replaced at each restart. */
  readonly incarnation: Incarnation;
  readonly faults: FaultSwitch;
  readonly log: RecentEntries<RequestRecord>;
  readonly received: RecentEntries<ReceivedRequest>;
  readonly fingerprint: string;
  /** See `EmulatedEngine`. */
  readonly kvEvents: { readonly events: string; readonly replay: string | null; readonly topic: string } | null;
  restart(downMs?: number): Promise<void>;
  stats(): EngineStats;
}

/** What an engine did and has to do, for tests and demos. Counts are of the current incarnation. */
export interface EngineStats {
  readonly running: number;
  readonly waiting: number;
  readonly kvUsage: number;
  /** Sequences; a request with `n` choices counts `n`. */
  readonly submitted: number;
  readonly finished: number;
  readonly aborted: number;
  readonly preemptions: number;
  readonly promptTokens: number;
  readonly generatedTokens: number;
  readonly prefixQueriedTokens: number;
  readonly prefixHitTokens: number;
  readonly incarnations: number;
  /** The last 10,000 requests that reached the model, over all incarnations. */
  readonly requests: readonly RequestRecord[];
  /** Ids among them whose client left. */
  readonly abortedRequestIds: readonly string[];
  readonly received: readonly ReceivedRequest[];
}
