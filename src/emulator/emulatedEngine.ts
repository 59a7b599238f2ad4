import { randomBytes } from "node:crypto";
import type { EngineContext, EngineStats } from "./engineContext.ts";
import { resolveOptions, type EmulatedEngineOptions, type ResolvedOptions } from "./engineOptions.ts";
import { FaultSwitch, type Faults } from "./faults.ts";
import { EngineServer } from "./http/engineServer.ts";
import { Incarnation } from "./incarnation.ts";
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
  stats(): EngineStats;
  /** A new process on the same port after `downMs`: connections cut, cache empty, counters zero, new start time. */
  restart(downMs?: number): Promise<void>;
  stop(): Promise<void>;
}

/** Starts one engine; resolves when it listens. Many of them fit into one process. */
export async function startEmulatedEngine(options: EmulatedEngineOptions = {}): Promise<EmulatedEngine> {
  const engine = new Engine(resolveOptions(options));
  await engine.server.open();
  return engine;
}

class Engine implements EmulatedEngine, EngineContext {
  readonly options: ResolvedOptions;
  readonly faults: FaultSwitch;
  readonly server: EngineServer;
  readonly log = new RecentEntries<RequestRecord>(LOGGED_REQUESTS);
  readonly received: RecentEntries<ReceivedRequest>;
  readonly fingerprint: string;
  incarnation: Incarnation;
  #incarnations = 1;
  #stopped = false;

  constructor(options: ResolvedOptions) {
    this.options = options;
    this.fingerprint = `vllm-${options.version}-${randomBytes(4).toString("hex")}`;
    this.received = new RecentEntries(options.keepReceived);
    this.incarnation = new Incarnation(options);
    this.faults = new FaultSwitch((faults) => this.#apply(faults));
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

  async restart(downMs = 0): Promise<void> {
    this.incarnation.stop();
    await this.server.close();
    if (downMs > 0) await new Promise((resolve) => setTimeout(resolve, downMs));
    if (this.#stopped) return;
    this.incarnation = new Incarnation(this.options);
    this.incarnation.setSlowFactor(this.faults.current.slowFactor);
    this.#incarnations++;
    if (!this.faults.current.refuse) await this.server.open();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.incarnation.stop();
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
