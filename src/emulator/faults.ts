import { z } from "zod";

/** What an engine does wrong, on demand. Those that concern requests leave `/health`, `/metrics` and the like alone. */
export const FaultSettings = z.strictObject({
  /** Every step takes this many times as long. */
  slowFactor: z.number().min(0.01).max(1000).default(1),
  /** The listening socket is closed and every connection cut: connection refused. Undone only from inside the process. */
  refuse: z.boolean().default(false),
  /** Accepted and never answered: requests only, or everything, `/health` included. */
  hang: z.enum(["requests", "all"]).nullable().default(null),
  /** Answered at once with this status, before the model sees the request. */
  error: z
    .strictObject({
      status: z.int().min(400).max(599),
      message: z.string().default("emulated failure"),
      retryAfterSeconds: z.int().min(0).optional(),
      scope: z.enum(["requests", "all"]).default("requests"),
    })
    .nullable()
    .default(null),
  /** The connection is cut when a request has got so many tokens; 0: at its first token, before it is sent. */
  dieAfterTokens: z.int().min(0).nullable().default(null),
  /** Nothing more is sent after so many tokens, and the connection stays open. */
  stallAfterTokens: z.int().min(0).nullable().default(null),
  /** `/health` answers this late (real time), as during a long prefill. */
  healthDelayMs: z.number().min(0).default(0),
  /** Metrics that are not published, by name without suffix, e.g. `vllm:num_requests_running`. */
  missingMetrics: z.array(z.string()).default([]),
  /** So many of the next batches of KV events are not sent. A replay still has them. */
  dropKvBatches: z.int().min(0).default(0),
  /** So many of the next batches are lost for good: their numbers are taken, and no replay has them. */
  loseKvBatches: z.int().min(0).default(0),
  /** So many of the next batches are sent twice. */
  duplicateKvBatches: z.int().min(0).default(0),
  /** Batches of KV events leave this late (real time). */
  delayKvBatchesMs: z.number().min(0).default(0),
  /** Who asks for a replay gets no answer. */
  kvReplaySilent: z.boolean().default(false),
  /** The engine's clock is ahead by so much: its `Date`, its start time, the times of its events. */
  clockSkewMs: z.number().default(0),
  /** The engine sleeps: its metrics say so, and requests are not answered. */
  asleep: z.boolean().default(false),
  /** `/tokenize` gives other ids than the model uses, as another tokenizer would. */
  otherTokenizer: z.boolean().default(false),
  /** The faults of requests hit only so many more requests; null: every one. */
  requestsLeft: z.int().min(0).nullable().default(null),
});

export type Faults = z.output<typeof FaultSettings>;
export type FaultChanges = z.input<typeof FaultSettings>;

const NO_FAULTS: Faults = Object.freeze(FaultSettings.parse({}));

/** The faults that act on one request, fixed when it arrives. */
export type RequestFaults = Pick<Faults, "hang" | "error" | "dieAfterTokens" | "stallAfterTokens">;

const NO_REQUEST_FAULTS: RequestFaults = { hang: null, error: null, dieAfterTokens: null, stallAfterTokens: null };

const KV_FATES = [
  ["dropKvBatches", "drop"],
  ["loseKvBatches", "lose"],
  ["duplicateKvBatches", "duplicate"],
] as const;

/** The current faults of one engine. */
export class FaultSwitch {
  readonly #apply: (faults: Faults) => Promise<void>;
  #faults: Faults = NO_FAULTS;

  constructor(apply: (faults: Faults) => Promise<void>) {
    this.#apply = apply;
  }

  get current(): Faults {
    return this.#faults;
  }

  /** Changes the named faults and leaves the rest. Resolves when they are in force. Throws on an unknown or bad one. */
  async set(changes: FaultChanges): Promise<void> {
    this.#faults = FaultSettings.parse({ ...this.#faults, ...changes });
    await this.#apply(this.#faults);
  }

  async clear(): Promise<void> {
    this.#faults = NO_FAULTS;
    await this.#apply(this.#faults);
  }

  /** What becomes of the next batch of KV events; counts it. */
  nextKvBatch(): "send" | "drop" | "lose" | "duplicate" {
    for (const [fault, fate] of KV_FATES) {
      const left = this.#faults[fault];
      if (left === 0) continue;
      this.#faults = { ...this.#faults, [fault]: left - 1 };
      return fate;
    }
    return "send";
  }

  /** What the next request suffers; counts it against `requestsLeft`. */
  nextRequest(): RequestFaults {
    const { requestsLeft, asleep } = this.#faults;
    if (asleep) return { ...NO_REQUEST_FAULTS, hang: "requests" };
    if (requestsLeft === 0) return NO_REQUEST_FAULTS;
    if (requestsLeft !== null) this.#faults = { ...this.#faults, requestsLeft: requestsLeft - 1 };
    return this.#faults;
  }
}
