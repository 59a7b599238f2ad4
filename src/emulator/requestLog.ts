/** How far a request was when it ended. */
export type RequestPhase = "queued" | "prefill" | "decode";

/** What became of one request that reached the engine. */
export interface RequestRecord {
  /** The `X-Request-Id` it came with, or one made up. */
  readonly requestId: string;
  readonly path: string;
  readonly model: string;
  readonly outcome: "finished" | "aborted" | "died";
  /** Where it was when it ended; `decode` if it finished. */
  readonly phase: RequestPhase;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /** On the engine's modelled clock, of its first sequence; absent for one that never became a sequence. */
  readonly times?: {
    readonly arrivedMs: number;
    readonly scheduledMs: number | null;
    readonly firstTokenMs: number | null;
    readonly finishedMs: number | null;
  };
}

/** One request as it arrived. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** The last entries of a stream of them. */
export class RecentEntries<Entry> {
  readonly #capacity: number;
  readonly #entries: Entry[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  add(entry: Entry): void {
    if (this.#capacity === 0) return;
    if (this.#entries.length === this.#capacity) this.#entries.shift();
    this.#entries.push(entry);
  }
}
