import { Publisher, Router } from "zeromq";
import type { FaultSwitch } from "../faults.ts";
import type { CacheEvent } from "./cacheEvent.ts";
import { EVENT_FORMS, encodeBatch } from "./eventForm.ts";
import type { ResolvedKvEventOptions } from "./eventOptions.ts";
import { ReplayBuffer, type NumberedBatch } from "./replayBuffer.ts";

/** Tells who asked that nothing more comes. */
const END = Buffer.alloc(8, 0xff);

interface Outgoing extends NumberedBatch {
  readonly dueMs: number;
  /** 0: nobody gets it; 2: everybody gets it twice. */
  readonly copies: number;
  readonly kept: boolean;
}

export interface RankPublisherSetting {
  readonly rank: number;
  readonly host: string;
  readonly options: ResolvedKvEventOptions;
  readonly faults: FaultSwitch;
}

/**
 * Publishes what happens in one rank's prefix cache, numbered from 0, and repeats it on demand, as vLLM's
 * `ZmqEventPublisher` does. One object is one engine process: after a restart there is another.
 */
export class RankPublisher {
  readonly #setting: RankPublisherSetting;
  readonly #publisher: Publisher;
  readonly #replay: Router | null;
  readonly #buffer: ReplayBuffer;
  #nextSeq = 0;
  #outgoing: Outgoing[] = [];
  #sending = false;

  constructor(setting: RankPublisherSetting) {
    const { options } = setting;
    this.#setting = setting;
    this.#publisher = new Publisher({ sendHighWaterMark: options.highWaterMark, linger: 0 });
    this.#replay = options.replayPort === null ? null : new Router({ linger: 0 });
    this.#buffer = new ReplayBuffer(options.bufferSteps);
    if (EVENT_FORMS[options.form].clearsAtStart) this.publish([{ kind: "cleared" }]);
  }

  /** Resolves to the port it listens on; rejects where that is taken. */
  async listen(port: number): Promise<number> {
    await this.#publisher.bind(`tcp://${this.#setting.host}:${port === 0 ? "*" : port}`);
    return portOf(this.#publisher.lastEndpoint);
  }

  async listenForReplays(port: number): Promise<number> {
    if (this.#replay === null) return 0;
    await this.#replay.bind(`tcp://${this.#setting.host}:${port === 0 ? "*" : port}`);
    void this.#answer(this.#replay);
    return portOf(this.#replay.lastEndpoint);
  }

  close(): void {
    this.#outgoing = [];
    this.#publisher.close();
    this.#replay?.close();
  }

  /** One batch, of what one step did. */
  publish(events: readonly CacheEvent[]): void {
    if (events.length === 0 || this.#publisher.closed) return;
    const { rank, options, faults } = this.#setting;
    const { delayKvBatchesMs, clockSkewMs } = faults.current;
    const fate = faults.nextKvBatch();
    const nowMs = Date.now();
    this.#outgoing.push({
      seq: this.#nextSeq++,
      payload: encodeBatch(EVENT_FORMS[options.form], { events, atSeconds: (nowMs + clockSkewMs) / 1000, rank }),
      dueMs: nowMs + delayKvBatchesMs,
      copies: { send: 1, drop: 0, lose: 0, duplicate: 2 }[fate],
      kept: fate !== "lose",
    });
    if (!this.#sending) void this.#send();
  }

  /** A socket takes one message at a time; what is published meanwhile waits here, which with PUB is never long. */
  async #send(): Promise<void> {
    this.#sending = true;
    for (let next = this.#outgoing.shift(); next !== undefined; next = this.#outgoing.shift()) {
      const waitMs = next.dueMs - Date.now();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs).unref());
      if (this.#publisher.closed) break;
      const { seq, payload, copies, kept } = next;
      const frames = [this.#setting.options.topic, bigEndian(seq), payload];
      for (let copy = 0; copy < copies; copy++) await this.#publisher.send(frames).catch(ignoreClosed);
      if (kept) this.#buffer.add({ seq, payload });
    }
    this.#sending = false;
  }

  async #answer(replay: Router): Promise<void> {
    const { options, faults } = this.#setting;
    const { replayTopic } = EVENT_FORMS[options.form];
    try {
      for await (const frames of replay) {
        const [client, , from] = frames;
        if (frames.length !== 3 || client === undefined || from === undefined) continue;
        if (faults.current.kvReplaySilent) continue;
        for (const { seq, payload } of this.#buffer.from(BigInt(`0x0${from.toString("hex")}`))) {
          await replay.send([client, "", ...(replayTopic ? [options.topic] : []), bigEndian(seq), payload]);
        }
        await replay.send([client, "", ...(replayTopic ? [""] : []), END, ""]);
      }
    } catch (caught) {
      if (!replay.closed) throw caught;
    }
  }
}

function bigEndian(seq: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(seq));
  return bytes;
}

function portOf(endpoint: string | null): number {
  return Number(endpoint?.slice(endpoint.lastIndexOf(":") + 1));
}

/** A restart closes the socket under a message on its way, which is lost then, as it would be with the process. */
function ignoreClosed(): void {}
