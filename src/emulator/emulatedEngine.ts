import { randomBytes } from "node:crypto";
import type { EngineContext, EngineStats } from "./engineContext.ts";
import { resolveOptions, type EmulatedEngineOptions, type ResolvedOptions } from "./engineOptions.ts";
import { EventPublishers } from "./events/eventPublishers.ts";
import { FaultSwitch, type Faults } from "./faults.ts";
import { EngineServer } from "./http/engineServer.ts";
import { Incarnation } from "./incarnation.ts";
import { FOUR_BYTE_TOKENIZER, type EngineTokenizer } from "./tokens/engineTokenizer.ts";
import { loadTokenizer } from "./tokens/modelTokenizer.ts";
import { RecentEntries, type ReceivedRequest, type RequestRecord } from "./requestLog.ts";

const LOGGED_REQUESTS = 10_000;

/** An engine that answers over real HTTP and computes nothing. */
export interface EmulatedEngine {
  /** Origin, e.g. `http://127.0.0.1:8001`. The same after a restart. */
  readonly url: string;
  readonly port: number;
  readonly model: string;
  readonly options: ResolvedOptions;
  readonly faults: FaultSwitch;
  /** Where its first rank publishes KV events, with a replay where there is one; null: nowhere. The same after a restart. */
  readonly kvEvents: { readonly events: string; readonly replay: string | null; readonly topic: string } | null;
  stats(): EngineStats;
  /** A new process on the same port after `downMs`: connections cut, cache empty, counters zero, new start time. */
  restart(downMs?: number): Promise<void>;
  stop(): Promise<void>;
}

/** Starts one engine; resolves when it listens. Many of them fit into one process. */
export async function startEmulatedEngine(options: EmulatedEngineOptions = {}): Promise<EmulatedEngine> {
  const { tokenizer: folder = null } = options;
  const tokenizer = folder === null ? FOUR_BYTE_TOKENIZER : await loadTokenizer(folder);
  const engine = new Engine(resolveOptions(options), tokenizer);
  await engine.start();
  return engine;
}

class Engine implements EmulatedEngine, EngineContext {
  readonly options: ResolvedOptions;
  readonly tokenizer: EngineTokenizer;
  readonly faults: FaultSwitch;
  readonly server: EngineServer;
  readonly log = new RecentEntries<RequestRecord>(LOGGED_REQUESTS);
  readonly received: RecentEntries<ReceivedRequest>;
  readonly fingerprint: string;
  readonly #publishers: EventPublishers | null;
  incarnation: Incarnation;
  #incarnations = 1;
  #stopped = false;

  constructor(options: ResolvedOptions, tokenizer: EngineTokenizer) {
    this.options = options;
    this.tokenizer = tokenizer;
    this.fingerprint = `vllm-${options.version}-${randomBytes(4).toString("hex")}`;
    this.received = new RecentEntries(options.keepReceived);
    this.faults = new FaultSwitch((faults) => this.#apply(faults));
    const { kvEvents, host, dataParallelRanks: ranks } = options;
    this.#publishers = kvEvents === null ? null : new EventPublishers(kvEvents, { host, ranks, faults: this.faults });
    this.incarnation = new Incarnation(options, this.#publishers);
    this.server = new EngineServer(this);
  }

  get model(): string {
    return this.options.model;
  }

  get port(): number {
    return this.server.port;
  }

  get url(): string {
    const { host } = this.options;
    return `http://${host.includes(":") ? `[${host}]` : host}:${this.port}`;
  }

  get kvEvents(): EmulatedEngine["kvEvents"] {
    const publishers = this.#publishers;
    if (publishers === null) return null;
    return { events: publishers.events, replay: publishers.replay, topic: publishers.options.topic };
  }

  async start(): Promise<void> {
    try {
      await this.#publishers?.open();
      await this.server.open();
    } catch (caught) {
      this.#publishers?.close();
      throw caught;
    }
  }

  async restart(downMs = 0): Promise<void> {
    this.incarnation.stop();
    this.#publishers?.close();
    await this.server.close();
    if (downMs > 0) await new Promise((resolve) => setTimeout(resolve, downMs));
    if (this.#stopped) return;
    this.incarnation = new Incarnation(this.options, this.#publishers);
    await this.#publishers?.open();
    this.incarnation.setSlowFactor(this.faults.current.slowFactor);
    this.#incarnations++;
    if (!this.faults.current.refuse) await this.server.open();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.incarnation.stop();
    this.#publishers?.close();
    await this.server.close();
  }

  stats(): EngineStats {
    const cores = this.incarnation.ranks.map(({ loop }) => loop.core);
    const sum = (value: (core: (typeof cores)[number]) => number): number =>
      cores.reduce((total, core) => total + value(core), 0);
    return {
      running: this.incarnation.running,
      waiting: this.incarnation.waiting,
      kvUsage: sum((core) => core.kvUsage) / cores.length,
      submitted: sum((core) => core.counters.submitted),
      finished: sum((core) => core.counters.finished),
      aborted: sum((core) => core.counters.aborted),
      preemptions: sum((core) => core.counters.preemptions),
      promptTokens: sum((core) => core.counters.promptTokens),
      generatedTokens: sum((core) => core.counters.generatedTokens),
      prefixQueriedTokens: sum((core) => core.counters.prefixQueriedTokens),
      prefixHitTokens: sum((core) => core.counters.prefixHitTokens),
      incarnations: this.#incarnations,
      requests: this.log.entries,
      abortedRequestIds: this.log.entries.flatMap(({ outcome, requestId }) =>
        outcome === "aborted" ? [requestId] : [],
      ),
      received: this.received.entries,
    };
  }

  async #apply(faults: Faults): Promise<void> {
    this.incarnation.setSlowFactor(faults.slowFactor);
    if (faults.refuse) await this.server.close();
    else await this.server.open();
  }
}
