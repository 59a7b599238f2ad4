import type { Clock } from "../determinism/clock.ts";
import type { Random } from "../determinism/random.ts";
import type { Cancel, Timers } from "../determinism/timers.ts";
import type { EngineEndpoint, EngineKind } from "../discovery/replicaSpec.ts";
import { toRouterError, type RouterError } from "../errors/routerError.ts";
import { every } from "./cadence.ts";
import { detectEngine, type DetectedEngine } from "./detectEngine.ts";
import type { AskEngine, EngineAdapter, EngineProfile } from "./engineAdapter.ts";
import type { EngineClient } from "./engineClient.ts";
import { limitAsk } from "./limitAsk.ts";
import { MissingFacts } from "./missingFacts.ts";
import type { EngineHealth, MonitorListener } from "./monitorListener.ts";
import { RestartDetector } from "./restartDetector.ts";
import type { ScrapeResult } from "./vocabulary.ts";

export interface MonitorSettings {
  readonly healthEveryMs: number;
  readonly scrapeEveryMs: number;
  readonly modelsEveryMs: number;
  /** Limit of each single question. */
  readonly askLimitMs: number;
  /** Delay after the first failed probe; it doubles up to the maximum. */
  readonly probeFirstDelayMs: number;
  readonly probeMaxDelayMs: number;
}

export interface WatchTools {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly listener: MonitorListener;
  readonly settings: MonitorSettings;
}

/** An engine that keeps refusing its metrics may have become another kind of engine: after so many times, look again. */
const FAILED_SCRAPES_UNTIL_PROBE = 3;

type State =
  | { readonly kind: "probing"; readonly cancel: Cancel }
  | {
      readonly kind: "watching";
      readonly adapter: EngineAdapter;
      readonly missing: MissingFacts;
      readonly cancel: Cancel;
    }
  | { readonly kind: "stopped" };

/**
 * Watches one endpoint: probes until an engine is recognised, then asks for health, metrics and models, each at its own
 * pace, so that a health route that hangs in a long prefill holds up nothing else. At most one question of each sort is
 * under way, whatever the engine does.
 */
export class EndpointWatch {
  readonly endpoint: EngineEndpoint;
  readonly #tools: WatchTools;
  readonly #client: EngineClient;
  readonly #ask: AskEngine;
  #restarts = new RestartDetector();
  #state: State;
  #kind: EngineKind | null;
  /** Null: not identified yet, or its end was told already. */
  #lastProfile: EngineProfile | null = null;
  #failedProbes = 0;
  #failedScrapes = 0;
  /** Connections were refused since the engine was last identified. */
  #wasGone = false;

  constructor(endpoint: EngineEndpoint, client: EngineClient, tools: WatchTools) {
    this.endpoint = endpoint;
    this.#client = client;
    this.#tools = tools;
    this.#ask = limitAsk(client.ask, tools.timers, tools.settings.askLimitMs);
    this.#kind = endpoint.engine;
    this.#state = this.#probeAfter(0);
  }

  async stop(): Promise<void> {
    this.#enter({ kind: "stopped" });
    await this.#client.close();
  }

  #enter(state: State): void {
    if (this.#state.kind !== "stopped") this.#state.cancel();
    this.#state = state;
  }

  #probeAfter(delayMs: number): State {
    return { kind: "probing", cancel: this.#tools.timers.after(delayMs, () => void this.#probe()) };
  }

  async #probe(): Promise<void> {
    const probing = this.#state;
    let why: string;
    let health: EngineHealth | null = null;
    try {
      const detected = await detectEngine(this.#ask, this.#kind);
      const wanted = this.endpoint.engine;
      if (detected !== null && (wanted === null || wanted === detected.adapter.kind)) {
        const scrape = await this.#scrapeOrNull(detected.adapter);
        if (this.#state === probing) this.#identified(detected, scrape);
        return;
      }
      why =
        detected === null
          ? `${this.endpoint.url} answers, but not like any engine that is known here.`
          : `${this.endpoint.url} is configured as ${wanted}, but answers like ${detected.adapter.kind}.`;
    } catch (caught) {
      const error = toRouterError(caught);
      why = error.message;
      health = healthOfFailure(error);
    }
    if (this.#state !== probing) return;
    const nowMs = this.#tools.clock.nowMs();
    this.#tools.listener.unidentified(this.endpoint, why, nowMs);
    if (health !== null) this.#tools.listener.health(this.endpoint, health, nowMs);
    this.#enter(this.#probeAfter(this.#backOffMs(this.#failedProbes++)));
  }

  /** Doubles, with jitter: engines that went down together must not be asked together for ever. */
  #backOffMs(failures: number): number {
    const { probeFirstDelayMs, probeMaxDelayMs } = this.#tools.settings;
    const fullMs = Math.min(probeMaxDelayMs, probeFirstDelayMs * 2 ** Math.min(failures, 30));
    return fullMs * (0.5 + this.#tools.random.next() / 2);
  }

  async #scrapeOrNull(adapter: EngineAdapter): Promise<ScrapeResult | null> {
    try {
      return await adapter.scrape(this.#ask);
    } catch {
      // Reported by the first regular scrape.
      return null;
    }
  }

  #identified({ adapter, profile }: DetectedEngine, scrape: ScrapeResult | null): void {
    const { listener, clock, settings, random } = this.#tools;
    const nowMs = clock.nowMs();
    if (this.#isAnotherProcess({ adapter, profile }, scrape)) listener.restarted(this.endpoint, nowMs);
    this.#kind = adapter.kind;
    this.#lastProfile = profile;
    this.#wasGone = false;
    this.#failedProbes = 0;
    const dataParallelRanks = this.endpoint.dataParallelRanks ?? profile.dataParallelRanks;
    listener.identified(this.endpoint, { ...profile, dataParallelRanks }, nowMs);

    const paces = [
      every(this.#tools, { intervalMs: settings.healthEveryMs, firstMs: 0 }, () => this.#checkHealth()),
      // A random phase: scrapes of a whole fleet in the same millisecond would stall the loop that carries traffic.
      every(this.#tools, { intervalMs: settings.scrapeEveryMs, firstMs: random.next() * settings.scrapeEveryMs }, () =>
        this.#scrape(),
      ),
      every(this.#tools, { intervalMs: settings.modelsEveryMs, firstMs: settings.modelsEveryMs }, () =>
        this.#listModels(),
      ),
    ];
    const missing = new MissingFacts(adapter.factSources);
    this.#enter({ kind: "watching", adapter, missing, cancel: () => paces.forEach((cancel) => cancel()) });
    if (scrape !== null) this.#report(scrape, missing);
  }

  #isAnotherProcess({ adapter, profile }: DetectedEngine, scrape: ScrapeResult | null): boolean {
    // Nothing can be compared with what the next scrape will say.
    if (scrape === null && this.#wasGone) this.#restarts = new RestartDetector();
    const restarted = scrape === null ? this.#wasGone : this.#restarts.observe(scrape, this.#wasGone);
    const last = this.#lastProfile;
    if (last === null) return false;
    return restarted || last.kind !== adapter.kind || last.version !== profile.version;
  }

  async #checkHealth(): Promise<void> {
    const watching = this.#state;
    if (watching.kind !== "watching") return;
    let health: EngineHealth;
    try {
      health = await watching.adapter.health(this.#ask);
    } catch (caught) {
      health = healthOfFailure(toRouterError(caught));
    }
    if (this.#state !== watching) return;
    this.#tools.listener.health(this.endpoint, health, this.#tools.clock.nowMs());
    if (health !== "unreachable") return;
    // Whatever comes back at this address may be another engine.
    this.#wasGone = true;
    this.#enter(this.#probeAfter(this.#backOffMs(0)));
  }

  async #scrape(): Promise<void> {
    const watching = this.#state;
    if (watching.kind !== "watching") return;
    const { listener, clock } = this.#tools;
    try {
      const scrape = await watching.adapter.scrape(this.#ask);
      if (this.#state !== watching) return;
      this.#failedScrapes = 0;
      if (this.#restarts.observe(scrape, false)) {
        listener.restarted(this.endpoint, clock.nowMs());
        this.#lastProfile = null;
        this.#enter(this.#probeAfter(0));
      } else {
        this.#report(scrape, watching.missing);
      }
    } catch (caught) {
      if (this.#state !== watching) return;
      listener.scrapeFailed(this.endpoint, toRouterError(caught), clock.nowMs());
      if (++this.#failedScrapes === FAILED_SCRAPES_UNTIL_PROBE) this.#enter(this.#probeAfter(0));
    }
  }

  #report(scrape: ScrapeResult, tracker: MissingFacts): void {
    const nowMs = this.#tools.clock.nowMs();
    const missing = tracker.observe(scrape);
    const isNews = scrape.byRank.size > 0 || missing.length > 0;
    if (!isNews) return;
    this.#tools.listener.metrics(this.endpoint, { ...scrape, missing }, nowMs);
    const changed = tracker.changed(missing);
    if (changed !== null) this.#tools.listener.missing(this.endpoint, changed, nowMs);
  }

  async #listModels(): Promise<void> {
    const watching = this.#state;
    if (watching.kind !== "watching") return;
    const { listener, clock } = this.#tools;
    try {
      const models = await watching.adapter.models(this.#ask);
      if (this.#state === watching) listener.models(this.endpoint, models, clock.nowMs());
    } catch (caught) {
      if (this.#state === watching) listener.modelsFailed(this.endpoint, toRouterError(caught), clock.nowMs());
    }
  }
}

function healthOfFailure(error: RouterError): EngineHealth {
  if (error.code === "engine_stalled") return "silent";
  return error.code === "engine_unreachable" || error.code === "connect_timeout" ? "unreachable" : "unready";
}
