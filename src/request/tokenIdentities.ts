import { Worker } from "node:worker_threads";
import { copyInSlices } from "./copyInSlices.ts";
import type { Identity } from "./identity.ts";
import type { TokenizerSource } from "./tokenizerSource.ts";
import type { TokenAnswer, TokenChainOptions, TokenQuestion } from "./tokenTask.ts";
import type { TokenizedApi } from "./tokens/promptTokens.ts";
import { TokenFallback } from "./tokens/tokenFallback.ts";

export interface TokenIdentitiesOptions {
  /** Each holds every tokenizer, about ten times the size of its file. */
  readonly threads?: number;
  /** Bodies that may wait for one thread; what finds no room is identified by its text. */
  readonly maxQueuedTasks?: number;
  readonly maxQueuedBytes?: number;
}

const MIB = 1024 * 1024;
/**
 * Far above what the largest body that is read builds up. A thread that gets there usually dies alone, but where it asks
 * for one large piece V8 may end the process: so what bounds a thread's memory are the bounds of what it reads.
 */
const MAX_HEAP_MIB = 4096;
const THREAD_FILE = new URL(import.meta.url.endsWith(".ts") ? "tokenThread.ts" : "tokenThread.js", import.meta.url);

/**
 * Identities over the engine's own tokens, on threads of their own: rendering and tokenising a long conversation for the
 * first time takes far longer than the event loop may be held up.
 */
export class TokenIdentities {
  readonly #limits: Required<TokenIdentitiesOptions>;
  #threads: readonly TokenThread[] = [];
  #models: ReadonlySet<string> = new Set();
  #closed = false;

  constructor(options: TokenIdentitiesOptions = {}) {
    this.#limits = {
      threads: options.threads ?? 1,
      maxQueuedTasks: options.maxQueuedTasks ?? 64,
      maxQueuedBytes: options.maxQueuedBytes ?? 16 * MIB,
    };
  }

  /** Loads the tokenizers of these models. Problems by model; if there are any, everything stays as it was. */
  async load(sources: ReadonlyMap<string, TokenizerSource>): Promise<ReadonlyMap<string, string>> {
    if (sources.size === 0 && this.#threads.length === 0) return new Map();
    if (this.#threads.length === 0)
      this.#threads = Array.from({ length: this.#limits.threads }, () => new TokenThread());
    const [problems = new Map<string, string>()] = await Promise.all(
      this.#threads.map((thread) => thread.load(sources)),
    );
    if (problems.size === 0) this.#models = new Set(sources.keys());
    return problems;
  }

  has(model: string): boolean {
    return this.#models.has(model);
  }

  /**
   * @param body has to stay as it is until this settles
   * @throws {TokenFallback} (by rejection) with the reason why there is none
   */
  async identify(model: string, api: TokenizedApi, body: Buffer, options: TokenChainOptions): Promise<Identity> {
    const thread = this.#leastBusy();
    if (thread === null || this.#closed || !this.#hasRoom(thread, body.length)) throw new TokenFallback("overloaded");
    const release = thread.expect(body.length);
    const copy = Buffer.allocUnsafeSlow(body.length);
    await copyInSlices(body, copy);
    const answer = await thread.ask({ kind: "identify", model, api, body: copy, options }).finally(release);
    if (answer.kind !== "chain")
      throw new TokenFallback(answer.kind === "fallback" ? answer.reason : "tokenizer_failed");
    const { hashes, promptTokens } = answer;
    return {
      hashes,
      blockTokens: options.blockTokens,
      promptTokens,
      promptBytes: promptTokens * Uint32Array.BYTES_PER_ELEMENT,
      approximate: false,
      unhashable: null,
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }

  /** A body of any size may go to a thread that has nothing else to do. */
  #hasRoom(thread: TokenThread, bytes: number): boolean {
    const { maxQueuedTasks, maxQueuedBytes } = this.#limits;
    if (thread.queuedTasks === 0) return true;
    return thread.queuedTasks < maxQueuedTasks && thread.queuedBytes + bytes <= maxQueuedBytes;
  }

  #leastBusy(): TokenThread | null {
    let least: TokenThread | null = null;
    for (const thread of this.#threads) if (least === null || thread.queuedBytes < least.queuedBytes) least = thread;
    return least;
  }
}

type Settle = (answer: TokenAnswer) => void;

const FAILED: TokenAnswer = { kind: "fallback", reason: "tokenizer_failed" };

/** One thread, which answers in order. If it dies, another takes its place and what waited is not answered. */
class TokenThread {
  queuedTasks = 0;
  queuedBytes = 0;
  /** What this thread has loaded; null: nothing yet, and if it dies so, the next would too. */
  #loaded: ReadonlyMap<string, TokenizerSource> | null = null;
  #worker: Worker | null = null;
  readonly #waiting: Settle[] = [];
  #closed = false;

  async load(sources: ReadonlyMap<string, TokenizerSource>): Promise<ReadonlyMap<string, string>> {
    const answer = await this.ask({ kind: "load", sources });
    if (answer.kind !== "loaded") return new Map([...sources.keys()].map((model) => [model, "its thread died"]));
    if (answer.problems.size === 0) this.#loaded = sources;
    return answer.problems;
  }

  /** Takes room for a task, from the decision that there is some; returns what gives it back. */
  expect(bytes: number): () => void {
    this.queuedTasks++;
    this.queuedBytes += bytes;
    return () => {
      this.queuedTasks--;
      this.queuedBytes -= bytes;
    };
  }

  ask(question: TokenQuestion): Promise<TokenAnswer> {
    if (this.#closed) return Promise.resolve(FAILED);
    const worker = (this.#worker ??= this.#start());
    return new Promise((settle) => {
      this.#waiting.push(settle);
      // Only a thread at work keeps the process alive.
      worker.ref();
      worker.postMessage(question, question.kind === "identify" ? [question.body.buffer as ArrayBuffer] : []);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(THREAD_FILE, { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB } });
    worker.on("message", (answer: TokenAnswer) => {
      this.#waiting.shift()?.(answer);
      if (this.#waiting.length === 0) worker.unref();
    });
    // An error is always followed by the exit, which cleans up; without a listener it would be thrown.
    worker.on("error", () => {});
    worker.on("exit", () => {
      this.#worker = null;
      for (const settle of this.#waiting.splice(0)) settle(FAILED);
      const sources = this.#loaded;
      this.#loaded = null;
      if (!this.#closed && sources !== null) void this.load(sources);
    });
    return worker;
  }
}
