import { setTimeout as sleep } from "node:timers/promises";
import type { FaultSwitch } from "../faults.ts";
import type { CacheEvent } from "./cacheEvent.ts";
import type { ResolvedKvEventOptions } from "./eventOptions.ts";
import { RankPublisher } from "./rankPublisher.ts";

/** Runs of free ports are looked for so often, and a port that a process has just left is waited for so long. */
const TRIES = 50;
const RETRY_AFTER_MS = 20;

/** The publishers of all ranks of one engine. Its ports outlive a restart, its sequences and buffers don't. */
export class EventPublishers {
  readonly options: ResolvedKvEventOptions;
  readonly #host: string;
  readonly #faults: FaultSwitch;
  readonly #ranks: number;
  /** Of the first rank; 0 until it is known. */
  #port: number;
  #replayPort: number;
  #open: readonly RankPublisher[] = [];

  constructor(options: ResolvedKvEventOptions, engine: { host: string; ranks: number; faults: FaultSwitch }) {
    this.options = options;
    this.#host = engine.host.includes(":") ? `[${engine.host}]` : engine.host;
    this.#faults = engine.faults;
    this.#ranks = engine.ranks;
    this.#port = options.port;
    this.#replayPort = options.replayPort ?? 0;
  }

  /** Address of the first rank's publisher. */
  get events(): string {
    return `tcp://${this.#host}:${this.#port}`;
  }

  get replay(): string | null {
    return this.options.replayPort === null ? null : `tcp://${this.#host}:${this.#replayPort}`;
  }

  /** Starts all ranks anew, at number 0. Rejects if the ports stay taken. */
  async open(): Promise<void> {
    this.close();
    for (let tries = 1; ; tries++) {
      const opened: RankPublisher[] = [];
      try {
        await this.#openRanks(opened);
        this.#open = opened;
        return;
      } catch (caught) {
        for (const publisher of opened) publisher.close();
        if (tries === TRIES) throw withPort(caught);
        await sleep(RETRY_AFTER_MS);
      }
    }
  }

  publish(rank: number, events: readonly CacheEvent[]): void {
    this.#open[rank]?.publish(events);
  }

  close(): void {
    for (const publisher of this.#open) publisher.close();
    this.#open = [];
  }

  async #openRanks(opened: RankPublisher[]): Promise<void> {
    let port = this.#port;
    let replayPort = this.#replayPort;
    for (let rank = 0; rank < this.#ranks; rank++) {
      const publisher = new RankPublisher({ rank, host: this.#host, options: this.options, faults: this.#faults });
      opened.push(publisher);
      const taken = await publisher.listen(port === 0 ? 0 : port + rank);
      const replayTaken = await publisher.listenForReplays(replayPort === 0 ? 0 : replayPort + rank);
      if (rank === 0) {
        port = taken;
        replayPort = replayTaken;
      }
    }
    this.#port = port;
    this.#replayPort = replayPort;
  }
}

/** ZeroMQ puts the port into the address; whoever reports such errors expects them apart, as sockets of Node have them. */
function withPort(caught: unknown): unknown {
  const { address } = caught as { address?: unknown };
  const [, host, port] = /^tcp:\/\/(.*):(\d+)$/.exec(typeof address === "string" ? address : "") ?? [];
  return host === undefined ? caught : Object.assign(caught as Error, { address: host, port: Number(port) });
}
