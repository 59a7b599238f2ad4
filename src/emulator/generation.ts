import { blockHashes, textSeed, tokensSeed } from "./tokens/blockHashes.ts";
import { drawAnswerTokens } from "./tokens/outputLength.ts";
import { PIECE_LENGTH, type AnswerWords } from "./tokens/answerWords.ts";
import type { BlockContent } from "./events/cacheEvent.ts";
import type { EngineLoop, RunningSequence, SequenceSink } from "./engineLoop.ts";
import type { EngineContext } from "./engineContext.ts";
import type { ResolvedOptions } from "./engineOptions.ts";
import type { RequestPhase, RequestRecord } from "./requestLog.ts";

/** What a request asks of the model. */
export interface GenerationRequest {
  readonly prompts: readonly Uint32Array[];
  /** Choices per prompt (`n`). */
  readonly choicesPerPrompt: number;
  /** Null: as long as the answer happens to be; 0: no answer (embeddings). */
  readonly maxTokens: number | null;
  readonly minTokens: number;
  readonly ignoreEnd: boolean;
  readonly stop: readonly string[];
  readonly adapter: string | null;
  readonly salt: string | null;
  readonly priority: number;
  readonly readsCache: boolean;
}

/** Told as tokens come. */
export interface GenerationListener {
  token(choice: Choice): void;
  /** All choices have ended. */
  done(): void;
}

/** One answer to one prompt. Its text is known from the start; the engine only says when each token is there. */
export class Choice {
  readonly index: number;
  readonly prompt: Uint32Array;
  readonly plannedTokens: number;
  readonly finishReason: "length" | "stop";
  readonly stopReason: string | null;
  tokens = 0;
  readonly #words: AnswerWords;
  readonly #seed: number;
  /** Where the text is cut off because of a stop string. */
  readonly #textEnd: number;

  constructor(index: number, prompt: Uint32Array, words: AnswerWords, seed: number, plan: AnswerPlan) {
    this.index = index;
    this.prompt = prompt;
    this.#words = words;
    this.#seed = seed;
    this.plannedTokens = plan.tokens;
    this.finishReason = plan.finishReason;
    this.stopReason = plan.stopReason;
    this.#textEnd = plan.textEnd;
  }

  get ended(): boolean {
    return this.tokens === this.plannedTokens;
  }

  /** Text of the latest token. */
  get piece(): string {
    const at = this.tokens - 1;
    return this.#words.token(this.#seed, at).text.slice(0, Math.max(0, this.#textEnd - at * PIECE_LENGTH));
  }

  /** Text so far. */
  get text(): string {
    return this.#words.text(this.#seed, this.tokens).slice(0, this.#textEnd);
  }

  /** Id of the latest token. */
  get tokenId(): number {
    return this.#words.token(this.#seed, this.tokens - 1).id;
  }

  /** Ids so far. */
  get tokenIds(): number[] {
    return Array.from({ length: this.tokens }, (_, at) => this.#words.token(this.#seed, at).id);
  }

  /** Tokens of prompt and answer together, as the next turn would send them. */
  allTokens(): Uint32Array {
    const all = new Uint32Array(this.prompt.length + this.plannedTokens);
    all.set(this.prompt);
    for (let at = 0; at < this.plannedTokens; at++) all[this.prompt.length + at] = this.#words.token(this.#seed, at).id;
    return all;
  }
}

interface AnswerPlan {
  readonly tokens: number;
  readonly finishReason: "length" | "stop";
  readonly stopReason: string | null;
  readonly textEnd: number;
}

/** One request's sequences on one engine, from submission to the last token or the abort. */
export class Generation {
  readonly choices: readonly Choice[];
  readonly promptTokens: number;
  readonly reportsCachedTokens: boolean;
  readonly #loop: EngineLoop;
  readonly #sequences: readonly RunningSequence[];
  readonly #listener: GenerationListener;
  readonly #choicesPerPrompt: number;
  #open: number;
  #ended = false;

  constructor(
    loop: EngineLoop,
    { options, tokenizer }: Pick<EngineContext, "options" | "tokenizer">,
    request: GenerationRequest,
    listener: GenerationListener,
  ) {
    this.#loop = loop;
    this.#listener = listener;
    this.reportsCachedTokens = options.reportsCachedTokens;
    this.#choicesPerPrompt = request.choicesPerPrompt;
    this.choices = planChoices(options, tokenizer.answers, request);
    this.promptTokens = request.prompts.reduce((sum, prompt) => sum + prompt.length, 0);
    this.#open = this.choices.length;
    this.#sequences = loop.submit(
      this.choices.map((choice) => {
        const tokens = choice.allTokens();
        return {
          promptTokens: choice.prompt.length,
          outputTokens: choice.plannedTokens,
          hashes: blockHashes(tokens, options.blockTokens, { ...request, hashSeed: options.hashSeed }),
          adapter: request.adapter,
          priority: request.priority,
          readsCache: request.readsCache,
          owner: this.#sinkOf(
            choice,
            options.kvEvents === null ? null : { tokens, adapter: request.adapter, salt: request.salt },
          ),
        };
      }),
    );
  }

  get outputTokens(): number {
    return this.choices.reduce((sum, choice) => sum + choice.tokens, 0);
  }

  /** Prompt tokens found cached; further choices of a prompt find it cached by the first, which does not count. */
  get cachedTokens(): number {
    return this.#sequences.reduce(
      (sum, sequence, at) => (at % this.#choicesPerPrompt === 0 ? sum + sequence.cachedTokens : sum),
      0,
    );
  }

  get phase(): RequestPhase {
    if (this.choices.some((choice) => choice.tokens > 0)) return "decode";
    return this.#sequences.some((sequence) => sequence.firstScheduledMs !== null) ? "prefill" : "queued";
  }

  /** Of its first sequence. */
  get times(): NonNullable<RequestRecord["times"]> {
    const { arrivedMs, firstScheduledMs: scheduledMs, firstTokenMs, finishedMs } = this.#sequences[0]!;
    return { arrivedMs, scheduledMs, firstTokenMs, finishedMs };
  }

  get sequences(): readonly RunningSequence[] {
    return this.#sequences;
  }

  /** Stops what still runs; the listener hears nothing more. False if everything had ended. */
  abort(): boolean {
    if (this.#ended) return false;
    this.#ended = true;
    for (const sequence of this.#sequences) this.#loop.abort(sequence);
    return true;
  }

  #sinkOf(choice: Choice, content: BlockContent | null): SequenceSink {
    return {
      ...(content === null ? {} : { content }),
      token: () => {
        if (this.#ended) return;
        choice.tokens++;
        this.#listener.token(choice);
      },
      finished: () => {
        if (this.#ended || --this.#open > 0) return;
        this.#ended = true;
        this.#listener.done();
      },
    };
  }
}

function planChoices(options: ResolvedOptions, words: AnswerWords, request: GenerationRequest): Choice[] {
  const adapterSeed = textSeed(request.adapter ?? "");
  return request.prompts.flatMap((prompt, promptIndex) =>
    Array.from({ length: request.choicesPerPrompt }, (_, choiceIndex) => {
      const seed = tokensSeed(prompt, adapterSeed + choiceIndex);
      const index = promptIndex * request.choicesPerPrompt + choiceIndex;
      const plan = planAnswer(options, request, prompt.length, seed);
      const text = request.stop.length === 0 ? "" : words.text(seed, plan.tokens);
      return new Choice(index, prompt, words, seed, cutAtStop(plan, request.stop, text));
    }),
  );
}

function planAnswer(
  options: ResolvedOptions,
  request: GenerationRequest,
  promptTokens: number,
  seed: number,
): AnswerPlan {
  const room = Math.max(1, options.maxModelTokens - promptTokens);
  const limit = Math.min(request.maxTokens ?? room, room);
  const drawn = Math.max(request.minTokens, drawAnswerTokens(options.answerLength, seed));
  const mayStop = !request.ignoreEnd && (request.maxTokens === null || options.stopsBeforeLimit);
  const stopped = mayStop && drawn <= limit;
  return {
    tokens: stopped ? drawn : limit,
    finishReason: stopped ? "stop" : "length",
    stopReason: null,
    textEnd: Infinity,
  };
}

function cutAtStop(plan: AnswerPlan, stop: readonly string[], text: string): AnswerPlan {
  let cut = plan;
  for (const stopReason of stop) {
    const textEnd = stopReason === "" ? -1 : text.indexOf(stopReason);
    if (textEnd === -1 || textEnd >= cut.textEnd) continue;
    const tokens = Math.max(1, Math.ceil((textEnd + stopReason.length) / PIECE_LENGTH));
    cut = { tokens, finishReason: "stop", stopReason, textEnd };
  }
  return cut;
}
