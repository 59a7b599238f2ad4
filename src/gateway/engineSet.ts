import { isDeepStrictEqual } from "node:util";
import type { Config } from "#src/config/schema.ts";
import type { Clock } from "#src/determinism/clock.ts";
import type { Random } from "#src/determinism/random.ts";
import type { Cancel, Timers } from "#src/determinism/timers.ts";
import type { AdminSource } from "#src/discovery/adminSource.ts";
import { Discovery, type DiscoveryListener } from "#src/discovery/discovery.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import { createAskEngine } from "#src/engines/engineClient.ts";
import { EngineMonitor } from "#src/engines/engineMonitor.ts";
import { KvEventMonitor } from "#src/engines/events/kvEventMonitor.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import { recordedKvEvents } from "#src/recording/recordedKvEvents.ts";
import type { Recorder } from "#src/recording/write/recorder.ts";
import type { RequestLog } from "#src/telemetry/requestLog.ts";
import type { KvStreamSnapshot } from "#src/telemetry/snapshots.ts";
import { engineEvents, logFleetChanges } from "./engineEvents.ts";
import { kvEventNews } from "./kvEventNews.ts";
import { configuredEndpoints, makeSources, type Sources } from "./sources.ts";
import { ViewRepair } from "./viewRepair.ts";
import { WarmStart } from "./warmStart.ts";

/** Views are looked at so often for what could be mended. */
const REPAIR_LOOK_MS = 1000;
/** TensorRT-LLM answers a pull with all events that its buffer held. */
const MAX_PULLED_BYTES = 64 * 1024 * 1024;

export interface EngineSetTools {
  readonly fleet: Fleet;
  readonly log: RequestLog;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly authorities: readonly string[] | undefined;
  /** Null: nothing is recorded. */
  readonly recorder: Recorder | null;
}

/** Which engines there are: from all sources, watched, and known to the fleet. */
export class EngineSet {
  readonly #tools: EngineSetTools;
  readonly warmStart: WarmStart;
  readonly #monitor: EngineMonitor;
  readonly #kvEvents: KvEventMonitor;
  readonly #repair: ViewRepair;
  #cancelRepair: Cancel = () => undefined;
  #config: Config;
  #sources: Sources;
  #discovery: Discovery;

  constructor(config: Config, tools: EngineSetTools) {
    const { fleet, log, clock, timers, random, authorities, recorder } = tools;
    const tls = authorities === undefined ? {} : { ca: authorities.join("\n") };
    this.#tools = tools;
    this.#config = config;
    this.warmStart = new WarmStart({ fleet, log, timers });
    const news = kvEventNews(fleet, log, this.warmStart, clock);
    this.#kvEvents = new KvEventMonitor({
      listener: recorder === null ? news : recordedKvEvents(news, recorder),
      clock,
      timers,
      random,
      open: ({ url, apiKey }) => createAskEngine({ url, apiKey, tls, maxBytes: MAX_PULLED_BYTES }),
    });
    const toFleet = engineEvents(fleet, log);
    this.#monitor = new EngineMonitor({
      listener: {
        ...toFleet,
        identified: (endpoint, profile, nowMs) => {
          const [before] = fleet.ofEndpoint(endpoint.name);
          toFleet.identified(endpoint, profile, nowMs);
          // What its streams told went to a replica that is no more.
          if (fleet.ofEndpoint(endpoint.name)[0] !== before) this.#kvEvents.restarted(endpoint);
          this.#kvEvents.identified(endpoint, profile);
        },
        restarted: (endpoint, nowMs) => {
          toFleet.restarted(endpoint, nowMs);
          this.#kvEvents.restarted(endpoint);
        },
      },
      clock,
      timers,
      random,
      open: ({ url, apiKey }) => createAskEngine({ url, apiKey, tls }),
    });
    this.#repair = new ViewRepair({
      fleet,
      clock,
      log,
      startOver: (endpoint) => this.#kvEvents.restarted(endpoint),
      repeatAll: (endpoint) => this.#kvEvents.repeatAll(endpoint),
    });
    this.#sources = makeSources(config, timers);
    this.#discovery = this.#makeDiscovery(this.#sources);
    logFleetChanges(fleet, log);
  }

  get admin(): AdminSource {
    return this.#sources.admin;
  }

  /** Resolves when each source has delivered or failed once. */
  start(): Promise<void> {
    this.warmStart.begin(this.#config.limits.warmStartMs);
    this.#lookLater();
    return this.#discovery.start();
  }

  /** Takes over a new configuration. Engines that stay keep all that is known of them. */
  async reload(config: Config): Promise<void> {
    const previous = this.#config;
    this.#config = config;
    if (isDeepStrictEqual(previous.discovery, config.discovery)) {
      this.#sources.listed.set(configuredEndpoints(config));
      return;
    }
    const sources = makeSources(config, this.#tools.timers, this.#sources.admin);
    // The new sources report only once all of them have: until then, engines that one of them names would seem gone.
    const next = this.#makeDiscovery(sources);
    await this.#discovery.stop();
    await next.start();
    this.#sources = sources;
    this.#discovery = next;
    this.#changed(next.endpoints);
  }

  async stop(): Promise<void> {
    this.warmStart.stop();
    this.#cancelRepair();
    await this.#discovery.stop();
    await Promise.all([this.#monitor.stop(), this.#kvEvents.stop()]);
  }

  /** Of the streams of KV events, for metrics. */
  *kvStreams(): Generator<KvStreamSnapshot> {
    for (const { endpoint, rank, status } of this.#kvEvents.status()) {
      const replica = this.#tools.fleet.ofEndpoint(endpoint.name).find((one) => (one.rank ?? 0) === rank);
      if (replica !== undefined) yield { replica: replica.id, ...status };
    }
  }

  #lookLater(): void {
    this.#cancelRepair = this.#tools.timers.after(REPAIR_LOOK_MS, () => {
      this.#repair.look();
      this.#lookLater();
    });
  }

  #makeDiscovery(sources: Sources): Discovery {
    const listener: DiscoveryListener = {
      changed: (endpoints) => {
        if (this.#discovery === discovery) this.#changed(endpoints);
      },
      problems: (bySource) => this.#problems(bySource),
    };
    const discovery: Discovery = new Discovery({
      sources: sources.all,
      listener,
      maxEndpoints: this.#config.discovery.maxEngines,
    });
    return discovery;
  }

  #changed(endpoints: readonly EngineEndpoint[]): void {
    const { fleet, clock } = this.#tools;
    fleet.applyEndpoints("discovery", endpoints, clock.nowMs());
    this.#monitor.setEndpoints(endpoints);
    this.#kvEvents.setEndpoints(endpoints);
  }

  #problems(bySource: ReadonlyMap<string, string>): void {
    const { fleet, log, clock } = this.#tools;
    if (bySource.size === 0) {
      fleet.conditions.clear("source_failed", null);
      log.event("info", "all sources of engines are well");
      return;
    }
    const message = [...bySource].map(([source, why]) => `${source}: ${why}`).join("; ");
    fleet.conditions.raise("source_failed", null, message, clock.nowMs());
    log.event("warn", "a source of engines failed; its last set stays", { problems: Object.fromEntries(bySource) });
  }
}
