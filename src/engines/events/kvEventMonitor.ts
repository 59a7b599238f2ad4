import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../determinism/clock.ts";
import type { Random } from "../../determinism/random.ts";
import type { Timers } from "../../determinism/timers.ts";
import type { EngineEndpoint } from "../../discovery/replicaSpec.ts";
import type { EngineProfile } from "../engineAdapter.ts";
import { createAskEngine, type EngineClient } from "../engineClient.ts";
import { EndpointEvents, type EndpointTools } from "./endpointEvents.ts";
import type { KvEventListener } from "./kvEventListener.ts";
import { ByteBudget } from "./stream/inbox.ts";
import type { StreamSockets } from "./stream/sockets.ts";
import type { StreamStatus } from "./stream/streamListener.ts";
import { DEFAULT_STREAM_SETTINGS, type StreamSettings } from "./stream/streamTools.ts";
import { Turns } from "./stream/turns.ts";
import { zmqSockets } from "./stream/zmqSockets.ts";

export interface KvMonitorSettings extends StreamSettings {
  /** Bytes of messages that were received and not yet told, of all streams together. */
  readonly maxQueuedBytes: number;
}

const DEFAULT_KV_MONITOR_SETTINGS: KvMonitorSettings = {
  ...DEFAULT_STREAM_SETTINGS,
  maxQueuedBytes: 256 * 1024 * 1024,
};

export interface KvEventMonitorOptions {
  readonly listener: KvEventListener;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly settings?: Partial<KvMonitorSettings>;
  /** How an endpoint is asked over HTTP; by default with the endpoint's own key. */
  readonly open?: (endpoint: EngineEndpoint) => EngineClient;
  readonly sockets?: StreamSockets;
}

/** TensorRT-LLM answers with all that its buffer held. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

function openByHttp({ url, apiKey }: EngineEndpoint): EngineClient {
  return createAskEngine({ url, apiKey, maxBytes: MAX_ANSWER_BYTES });
}

/** Follows the KV event streams of every endpoint and rank of the fleet, each on its own. */
export class KvEventMonitor {
  readonly #tools: EndpointTools;
  readonly #open: (endpoint: EngineEndpoint) => EngineClient;
  readonly #endpoints = new Map<string, EndpointEvents>();

  constructor({ listener, clock, timers, random, settings = {}, open, sockets }: KvEventMonitorOptions) {
    const all = { ...DEFAULT_KV_MONITOR_SETTINGS, ...settings };
    this.#tools = {
      listener,
      clock,
      timers,
      random,
      settings: all,
      turns: new Turns(),
      budget: new ByteBudget(all.maxQueuedBytes),
      sockets: sockets ?? zmqSockets,
    };
    this.#open = open ?? openByHttp;
  }

  /** The whole set. Endpoints that stayed as they were go on undisturbed; the listener hears no more of those that left. */
  setEndpoints(endpoints: readonly EngineEndpoint[]): void {
    const wanted = new Map(endpoints.map((endpoint) => [endpoint.url, endpoint]));
    for (const [url, events] of this.#endpoints) {
      if (isDeepStrictEqual(events.endpoint, wanted.get(url))) continue;
      this.#endpoints.delete(url);
      const next = wanted.get(url);
      if (next !== undefined) events.handOver(next.kvEvents === null);
      void events.stop();
    }
    for (const [url, endpoint] of wanted) {
      if (this.#endpoints.has(url)) continue;
      this.#endpoints.set(url, new EndpointEvents(endpoint, this.#open(endpoint), this.#tools));
    }
  }

  /** For the engine monitor to pass on: brings the number of ranks, and that the engine may be asked now. */
  identified(endpoint: EngineEndpoint, profile: EngineProfile): void {
    this.#endpoints.get(endpoint.url)?.identified(profile);
  }

  /** For the engine monitor to pass on: another process answers at the endpoint. Its streams tell everything anew. */
  restarted(endpoint: EngineEndpoint): void {
    this.#endpoints.get(endpoint.url)?.restarted();
  }

  /** As far as it has a replay, the engine repeats everything it can, and it is told anew after a loss. */
  repeatAll(endpoint: EngineEndpoint): void {
    this.#endpoints.get(endpoint.url)?.repeatAll();
  }

  /** Of every stream over ZeroMQ. */
  status(): { endpoint: EngineEndpoint; rank: number; status: StreamStatus }[] {
    return [...this.#endpoints.values()].flatMap((events) =>
      events.status().map((stream) => ({ endpoint: events.endpoint, ...stream })),
    );
  }

  async stop(): Promise<void> {
    const all = [...this.#endpoints.values()];
    this.#endpoints.clear();
    await Promise.all(all.map((events) => events.stop()));
  }
}
