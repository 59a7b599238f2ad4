import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../determinism/clock.ts";
import type { Random } from "../determinism/random.ts";
import type { Timers } from "../determinism/timers.ts";
import type { EngineEndpoint } from "../discovery/replicaSpec.ts";
import { EndpointWatch, type MonitorSettings, type WatchTools } from "./endpointWatch.ts";
import { createAskEngine, type EngineClient } from "./engineClient.ts";
import type { MonitorListener } from "./monitorListener.ts";

const DEFAULT_MONITOR_SETTINGS: MonitorSettings = {
  healthEveryMs: 1000,
  scrapeEveryMs: 1000,
  modelsEveryMs: 10_000,
  askLimitMs: 5000,
  probeFirstDelayMs: 250,
  probeMaxDelayMs: 5000,
};

export interface EngineMonitorOptions {
  readonly listener: MonitorListener;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly settings?: Partial<MonitorSettings>;
  /** How an endpoint is asked; by default over HTTP with the endpoint's own key. */
  readonly open?: (endpoint: EngineEndpoint) => EngineClient;
}

function openByHttp({ url, apiKey }: EngineEndpoint): EngineClient {
  return createAskEngine({ url, apiKey });
}

/** Watches every endpoint of the fleet, each on its own: one that hangs costs the others nothing. */
export class EngineMonitor {
  readonly #tools: WatchTools;
  readonly #open: (endpoint: EngineEndpoint) => EngineClient;
  readonly #watches = new Map<string, EndpointWatch>();

  constructor({ listener, clock, timers, random, settings, open }: EngineMonitorOptions) {
    this.#tools = { listener, clock, timers, random, settings: { ...DEFAULT_MONITOR_SETTINGS, ...settings } };
    this.#open = open ?? openByHttp;
  }

  /** The whole set. Endpoints that stayed as they were go on undisturbed; the listener hears no more of those that left. */
  setEndpoints(endpoints: readonly EngineEndpoint[]): void {
    const wanted = new Map(endpoints.map((endpoint) => [endpoint.url, endpoint]));
    for (const [url, watch] of this.#watches) {
      if (isDeepStrictEqual(watch.endpoint, wanted.get(url))) continue;
      this.#watches.delete(url);
      void watch.stop();
    }
    for (const [url, endpoint] of wanted) {
      if (this.#watches.has(url)) continue;
      this.#watches.set(url, new EndpointWatch(endpoint, this.#open(endpoint), this.#tools));
    }
  }

  async stop(): Promise<void> {
    const watches = [...this.#watches.values()];
    this.#watches.clear();
    await Promise.all(watches.map((watch) => watch.stop()));
  }
}
