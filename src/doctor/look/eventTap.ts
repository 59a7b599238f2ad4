import type { KvEventBatch } from "#src/engines/events/kvEvent.ts";
import { readLiveMessage, readReplayMessage } from "#src/engines/events/stream/frames.ts";
import type { KvEventAddress, OpenSocket } from "#src/engines/events/stream/sockets.ts";
import { decodeKvMessage } from "#src/engines/events/wire/kvMessage.ts";
import type { RankReading } from "../sighting.ts";
import type { LookTools } from "./lookTools.ts";

/** Past every number an engine can have reached: it answers that there is nothing, and sends no history. */
const BEYOND_END = Number.MAX_SAFE_INTEGER;

/** Listens to the event streams of an engine for as long as it is looked at. */
export class EventTap {
  readonly #addresses: readonly (KvEventAddress | null)[];
  readonly #tools: Pick<LookTools, "sockets" | "timers" | "wallMs" | "limits">;
  readonly #open: OpenSocket[] = [];
  #heard: (batch: KvEventBatch, receivedMs: number) => void = () => {};

  constructor(
    addresses: readonly (KvEventAddress | null)[],
    tools: Pick<LookTools, "sockets" | "timers" | "wallMs" | "limits">,
  ) {
    this.#addresses = addresses;
    this.#tools = tools;
  }

  /** Connects to every rank, and asks each for a replay of nothing. */
  readings(): Promise<RankReading[]> {
    return Promise.all(
      this.#addresses.map(async (address, rank) => {
        if (address === null) {
          return { rank, address, unreachable: "There is no such port.", replayFailure: null };
        }
        const [unreachable, replayFailure] = await Promise.all([
          this.#subscribe(address, rank),
          this.#askReplay(address),
        ]);
        return { rank, address, unreachable, replayFailure };
      }),
    );
  }

  /** From now on every batch goes to this listener, with the time since 1970 at which it came. */
  onBatch(heard: (batch: KvEventBatch, receivedMs: number) => void): void {
    this.#heard = heard;
  }

  close(): void {
    for (const socket of this.#open) socket.close();
  }

  /** Null once the publisher has greeted, else what is wrong. */
  #subscribe(address: KvEventAddress, rank: number): Promise<string | null> {
    return this.#inTime(`${address.events} did not greet`, (settle) =>
      this.#tools.sockets.subscribe(address, {
        connected: () => settle(null),
        disconnected: settle,
        message: (frames) => {
          const message = readLiveMessage(frames);
          if (message !== null) this.#heard(decodeKvMessage(message.payload, rank, message.seq), this.#tools.wallMs());
        },
      }),
    );
  }

  #askReplay({ replay, topic }: KvEventAddress): Promise<string | null> {
    if (replay === null) return Promise.resolve(null);
    return this.#inTime(`${replay} did not answer`, (settle) =>
      this.#tools.sockets.askReplay(replay, BEYOND_END, {
        message: (frames) => {
          if (readReplayMessage(frames, topic) === "end") settle(null);
        },
        failed: settle,
      }),
    );
  }

  #inTime(what: string, open: (settle: (why: string | null) => void) => OpenSocket): Promise<string | null> {
    const { timers, limits } = this.#tools;
    return new Promise((resolve) => {
      const cancel = timers.after(limits.eventMs, () => resolve(`${what} within ${limits.eventMs} ms.`));
      const socket = open((why) => {
        cancel();
        resolve(why);
      });
      this.#open.push(socket);
    });
  }
}
