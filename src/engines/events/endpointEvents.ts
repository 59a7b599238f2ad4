import { isDeepStrictEqual } from "node:util";
import type { EngineEndpoint, KvEventEndpoints } from "../../discovery/replicaSpec.ts";
import { toRouterError } from "../../errors/routerError.ts";
import type { EngineProfile } from "../engineAdapter.ts";
import type { EngineClient } from "../engineClient.ts";
import { askForAdvertisedEvents } from "./advertisedEvents.ts";
import { configuredAddress, endpointsOf } from "./eventAddresses.ts";
import type { KvEventListener } from "./kvEventListener.ts";
import { backOffMs } from "./stream/backOff.ts";
import { EventStream } from "./stream/eventStream.ts";
import type { StreamListener, StreamStatus } from "./stream/streamListener.ts";
import type { StreamTools } from "./stream/streamTools.ts";
import { TrtPullStream } from "./trtllm/pullStream.ts";

export interface EndpointTools extends StreamTools {
  readonly listener: KvEventListener;
}

/** An engine that tells nowhere where it publishes is asked again so seldom: it may be started anew with events. */
const ASK_AGAIN = { firstMs: 1000, maxMs: 30_000 };

/** The event streams of one endpoint: finds out where they are, and follows each rank's. */
export class EndpointEvents {
  readonly endpoint: EngineEndpoint;
  readonly #client: EngineClient;
  readonly #tools: EndpointTools;
  readonly #streams = new Map<number, EventStream>();
  #pull: TrtPullStream | null = null;
  #source: KvEventEndpoints | null;
  #ranks: number;
  #asking = false;
  #askFailures = 0;
  #cancelAsk = () => {};
  #lastWhy: string | null = null;
  #stopped = false;

  constructor(endpoint: EngineEndpoint, client: EngineClient, tools: EndpointTools) {
    this.endpoint = endpoint;
    this.#client = client;
    this.#tools = tools;
    this.#source = endpoint.kvEvents ?? null;
    this.#ranks = endpoint.dataParallelRanks ?? 1;
    if (endpoint.kvEvents === undefined) void this.#askEngine();
    else this.#follow();
  }

  /** Another look at the engine, which may have been started anew: how many ranks it has, and where they publish. */
  identified(profile: EngineProfile): void {
    this.#ranks = this.endpoint.dataParallelRanks ?? Math.max(this.#ranks, profile.dataParallelRanks);
    if (this.#source?.endpoint === "pull") this.#startPull(profile.kvBlockTokens);
    else this.#follow();
    if (this.endpoint.kvEvents === undefined) void this.#askEngine();
  }

  restarted(): void {
    for (const stream of this.#streams.values()) stream.startOver();
    this.#pull?.startOver();
  }

  repeatAll(): void {
    for (const stream of this.#streams.values()) if (stream.canReplay) stream.startOver();
  }

  status(): { rank: number; status: StreamStatus }[] {
    return [...this.#streams].map(([rank, stream]) => ({ rank, status: stream.status() }));
  }

  /** Other streams of the same ranks follow, or `last`: none. What was told is void, for nobody keeps it up to date. */
  handOver(last: boolean): void {
    for (const rank of this.#streams.keys()) this.#listenerOf(rank).lost("rebuild");
    this.#pull?.startOver();
    if (last) this.#listenerOf(0).failed("KV events are no longer followed.");
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelAsk();
    this.#endStreams();
    this.#pull?.stop();
    await this.#client.close();
  }

  async #askEngine(): Promise<void> {
    if (this.#asking || this.#stopped) return;
    this.#cancelAsk();
    this.#asking = true;
    let why: string;
    try {
      const advertised = await askForAdvertisedEvents(this.#client.ask);
      const source = advertised === null ? null : endpointsOf(advertised);
      if (advertised !== null && source !== null) {
        if (!this.#stopped) this.#found(source, advertised.dataParallelRanks);
        return;
      }
      why =
        advertised === null
          ? "The engine does not say that it publishes KV events; if it does, configure kvEvents."
          : `The engine connects to ${advertised.endpoint} to publish KV events; to receive them there, configure kvEvents.`;
    } catch (caught) {
      why = toRouterError(caught).message;
    } finally {
      this.#asking = false;
    }
    if (this.#stopped) return;
    this.#tellFailed(why);
    // Streams that run find out by themselves what became of the engine.
    if (this.#source !== null) return;
    const delayMs = backOffMs(this.#askFailures++, ASK_AGAIN, this.#tools.random);
    this.#cancelAsk = this.#tools.timers.after(delayMs, () => void this.#askEngine());
  }

  #found(source: KvEventEndpoints, ranks: number | null): void {
    this.#askFailures = 0;
    this.#lastWhy = null;
    this.#ranks = this.endpoint.dataParallelRanks ?? ranks ?? this.#ranks;
    if (!isDeepStrictEqual(source, this.#source)) {
      this.handOver(false);
      this.#endStreams();
    }
    this.#source = source;
    this.#follow();
  }

  /** A stream for each rank, those that there are already left as they are. */
  #follow(): void {
    const source = this.#source;
    if (source === null || source.endpoint === "pull" || this.#stopped) return;
    for (let rank = 0; rank < this.#ranks; rank++) {
      if (this.#streams.has(rank)) continue;
      const address = configuredAddress(source, this.endpoint.url, rank);
      if (address === null) this.#listenerOf(rank).failed(`${source.endpoint} has no address for rank ${rank}.`);
      else this.#streams.set(rank, new EventStream(rank, address, this.#listenerOf(rank), this.#tools));
    }
  }

  /** Only once it is known to be an engine that has this route: asking is not without effect. */
  #startPull(blockTokens: number | null): void {
    this.#pull ??= new TrtPullStream(this.#client.ask, (rank) => this.#listenerOf(rank), this.#tools, blockTokens);
  }

  #endStreams(): void {
    for (const stream of this.#streams.values()) stream.stop();
    this.#streams.clear();
  }

  /** The same reason is not told again and again. */
  #tellFailed(why: string): void {
    if (why === this.#lastWhy) return;
    this.#lastWhy = why;
    this.#listenerOf(0).failed(why);
  }

  #listenerOf(rank: number): StreamListener {
    const { endpoint } = this;
    const { listener, clock } = this.#tools;
    return {
      batch: (batch) => listener.batch(endpoint, rank, batch, clock.nowMs()),
      lost: (why) => listener.lost(endpoint, rank, why, clock.nowMs()),
      restarted: () => listener.restarted(endpoint, rank, clock.nowMs()),
      progress: (progress) => listener.progress(endpoint, rank, progress, clock.nowMs()),
      live: (history) => listener.live(endpoint, rank, history, clock.nowMs()),
      failed: (why) => listener.failed(endpoint, rank, why, clock.nowMs()),
    };
  }
}
