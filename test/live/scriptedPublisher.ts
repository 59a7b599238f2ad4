import { setTimeout as sleep } from "node:timers/promises";
import { Publisher, Router } from "zeromq";
import { batch } from "../unit/engines/events/wireEvents.ts";

const END_SEQ = Buffer.alloc(8, 0xff);

export interface PublisherOptions {
  /** Ports of a publisher before it; by default free ones. */
  readonly ports?: Ports;
  /** vLLM before 0.26 and SGLang answer without the topic. */
  readonly replayFrames?: 3 | 4;
  readonly windowBatches?: number;
  readonly topic?: string;
}

export interface Ports {
  readonly events: number;
  readonly replay: number;
}

/** An engine's publisher, with its faults: batches may stay unsent, answers may lack batches or never come. */
export class ScriptedPublisher {
  readonly ports: Ports;
  readonly topic: string;
  /** Starts that were asked for. */
  readonly asked: number[] = [];
  /** Which batches an answer leaves out. */
  omits: (seq: number) => boolean = () => false;
  answers = true;
  /** Answers wait for this. */
  until: Promise<void> = Promise.resolve();
  #events: Publisher;
  readonly #replay: Router;
  readonly #window: { seq: number; payload: Buffer }[] = [];
  readonly #windowBatches: number;
  readonly #replayFrames: 3 | 4;
  #nextSeq = 0;

  private constructor(events: Publisher, replay: Router, ports: Ports, options: PublisherOptions) {
    this.#events = events;
    this.#replay = replay;
    this.ports = ports;
    this.topic = options.topic ?? "kv";
    this.#windowBatches = options.windowBatches ?? 10_000;
    this.#replayFrames = options.replayFrames ?? 4;
    this.#serveReplay().catch((caught: unknown) => {
      // It may be stopped in the middle of an answer.
      if (!replay.closed) throw caught;
    });
  }

  static async start(options: PublisherOptions = {}): Promise<ScriptedPublisher> {
    const events = openPublisher();
    const replay = new Router({ linger: 0, sendHighWaterMark: 100_000 });
    const ports = {
      events: await bind(events, options.ports?.events),
      replay: await bind(replay, options.ports?.replay),
    };
    return new ScriptedPublisher(events, replay, ports, options);
  }

  get nextSeq(): number {
    return this.#nextSeq;
  }

  /** Sends a batch of events. */
  async publish(events: readonly unknown[]): Promise<void> {
    await this.send(this.keep(batch(events, 1700 + this.#nextSeq)));
  }

  /** A batch that is lost on its way: only a replay tells of it. */
  keep(payload: Buffer): { seq: number; payload: Buffer } {
    const kept = { seq: this.#nextSeq++, payload };
    this.#window.push(kept);
    if (this.#window.length > this.#windowBatches) this.#window.shift();
    return kept;
  }

  async send({ seq, payload }: { seq: number; payload: Buffer }): Promise<void> {
    await this.#events.send([this.topic, seqBytes(seq), payload]);
  }

  async sendRaw(frames: string[]): Promise<void> {
    await this.#events.send(frames);
  }

  /** Every subscriber loses its connection; the process lives on. */
  async interrupt(): Promise<void> {
    this.#events.close();
    this.#events = openPublisher();
    await bind(this.#events, this.ports.events);
  }

  /** A number that no batch gets. */
  skip(): void {
    this.#nextSeq++;
  }

  stop(): void {
    this.#events.close();
    this.#replay.close();
  }

  async #serveReplay(): Promise<void> {
    for await (const [id, , start] of this.#replay) {
      if (id === undefined || start === undefined) continue;
      const from = Number(start.readBigUInt64BE());
      this.asked.push(from);
      if (!this.answers) continue;
      await this.until;
      const topic = this.#replayFrames === 4 ? [this.topic] : [];
      const window = this.#window.slice();
      for (const { seq, payload } of window) {
        if (seq >= from && !this.omits(seq)) await this.#replay.send([id, "", ...topic, seqBytes(seq), payload]);
      }
      await this.#replay.send([id, "", ...topic.map(() => ""), END_SEQ, ""]);
    }
  }
}

function openPublisher(): Publisher {
  return new Publisher({ linger: 0, sendHighWaterMark: 100_000 });
}

/** A socket that was closed just now may hold its port for a moment. */
async function bind(socket: Publisher | Router, port: number | undefined): Promise<number> {
  for (let attempt = 0; ; attempt++) {
    try {
      await socket.bind(`tcp://127.0.0.1:${port ?? "*"}`);
      return Number(socket.lastEndpoint?.split(":").at(-1));
    } catch (caught) {
      if (attempt === 25) throw caught;
      await sleep(20);
    }
  }
}

function seqBytes(seq: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(seq));
  return bytes;
}
