/** A positive quantity with a long tail: log-normal, by its mean and the spread of its logarithm. */
export interface Spread {
  readonly mean: number;
  readonly sigma: number;
}

/** What conversations of one kind look like. Times are from an answer's end to the next prompt. */
export interface ConversationShape {
  /** Kinds of applications, each with its own system prompt; the first is used most (Zipf). */
  readonly applications: number;
  readonly systemTokens: Spread;
  readonly singleTurnShare: number;
  /** Of conversations that go on, geometric from two turns on. */
  readonly meanTurns: number;
  readonly inputTokens: Spread;
  readonly outputTokens: Spread;
  readonly pauseMs: Spread;
  /** A conversation ends before its prompt grows past this. */
  readonly maxContextTokens: number;
}

/**
 * People who chat. Lengths are ShareGPT's as the PagedAttention paper gives them (161 tokens in, 338 out on average);
 * 27% of its conversations have one turn and the mean is 5.75 turns (CachedAttention), so the others have 7.5. The
 * pause, half a minute to read and write, is a guess.
 */
const CHAT: ConversationShape = {
  applications: 4,
  systemTokens: { mean: 500, sigma: 0.8 },
  singleTurnShare: 0.27,
  meanTurns: 7.5,
  inputTokens: { mean: 161, sigma: 1.1 },
  outputTokens: { mean: 338, sigma: 0.9 },
  pauseMs: { mean: 30_000, sigma: 0.8 },
  maxContextTokens: 32_000,
};

/**
 * Programs that call tools in a loop: long shared instructions, results of tools as input, short answers, short pauses.
 * Means are chosen so that prompts come to about 8,600 tokens and answers to 182, as in Mooncake's tool and agent trace;
 * their prefixes are reused more than there (59%), where most conversations are cut off by the trace's ends.
 */
const AGENT: ConversationShape = {
  applications: 12,
  systemTokens: { mean: 3_000, sigma: 0.3 },
  singleTurnShare: 0.1,
  meanTurns: 9,
  inputTokens: { mean: 480, sigma: 1.0 },
  outputTokens: { mean: 182, sigma: 0.8 },
  pauseMs: { mean: 3_000, sigma: 1.0 },
  maxContextTokens: 64_000,
};

export const SHAPES = { chat: CHAT, agent: AGENT } as const satisfies Record<string, ConversationShape>;

export type ShapeName = keyof typeof SHAPES;
