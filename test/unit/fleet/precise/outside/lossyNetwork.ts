import type { Random } from "#src/determinism/random.ts";
import type {
  KvEventAddress,
  OpenSocket,
  ReplayEvents,
  StreamSockets,
  SubscriptionEvents,
} from "#src/engines/events/stream/sockets.ts";
import type { PlainBatch, PlainEngine } from "./plainEngine.ts";

interface Publisher {
  readonly engine: PlainEngine;
  readonly topic: string;
  readonly replayBatches: number;
  /** Messages that wait for a subscriber; the rest is lost to it. */
  readonly highWaterMark: number;
}

interface Connection {
  readonly publisher: Publisher;
  readonly topic: string;
  readonly events: SubscriptionEvents;
  queue: (readonly Buffer[])[];
  greeted: boolean;
  /** `dead`: its other end is gone, and nobody says so. */
  life: "open" | "closing" | "dead" | "closed";
}

interface Question {
  readonly publisher: Publisher;
  readonly fromSeq: number;
  readonly events: ReplayEvents;
  answer: (readonly Buffer[])[] | null;
  open: boolean;
}

const END = [Buffer.of(), Buffer.of(), Buffer.alloc(8, 0xff), Buffer.of()];

/** Sockets between engines and router, on which everything goes wrong that can, until it is told to behave. */
export class LossyNetwork implements StreamSockets {
  readonly #random: Random;
  readonly #byEvents = new Map<string, Publisher>();
  readonly #byReplay = new Map<string, Publisher>();
  #connections: Connection[] = [];
  #questions: Question[] = [];
  behaves = false;

  constructor(random: Random) {
    this.#random = random;
  }

  add(events: string, replay: string, publisher: Publisher): void {
    this.#byEvents.set(events, publisher);
    this.#byReplay.set(replay, publisher);
  }

  subscribe({ events: address, topic }: KvEventAddress, events: SubscriptionEvents): OpenSocket {
    const publisher = this.#byEvents.get(address)!;
    const connection: Connection = { publisher, topic, events, queue: [], greeted: false, life: "open" };
    this.#connections.push(connection);
    return { close: () => void (connection.life = "closed") };
  }

  askReplay(address: string, fromSeq: number, events: ReplayEvents): OpenSocket {
    const question: Question = { publisher: this.#byReplay.get(address)!, fromSeq, events, answer: null, open: true };
    this.#questions.push(question);
    return { close: () => void (question.open = false) };
  }

  publish(engine: PlainEngine, batch: PlainBatch): void {
    for (const connection of this.#connections) {
      const { publisher, topic, queue, greeted, life } = connection;
      if (publisher.engine !== engine || !greeted || life !== "open") continue;
      const messages = [[Buffer.from(publisher.topic), seqBytes(batch.seq), batch.payload]];
      if (this.#unlucky(0.05)) messages.unshift([Buffer.from("load"), seqBytes(batch.seq), batch.payload]);
      for (const message of messages) {
        if (!message[0]!.toString().startsWith(topic) || this.#unlucky(0.06)) continue;
        if (queue.length < publisher.highWaterMark) queue.push(message);
        if (this.#unlucky(0.03)) queue.push(message);
        if (this.#unlucky(0.02) && queue.length > 1) queue.push(queue.splice(queue.length - 2, 1)[0]!);
      }
    }
  }

  /** The process is gone. What it sent may still arrive; whether anybody learns of its end is another matter. */
  cut(engine: PlainEngine): void {
    for (const connection of this.#connections)
      if (connection.publisher.engine === engine && connection.life === "open")
        connection.life = this.#unlucky(0.25) ? "dead" : "closing";
    for (const question of this.#questions) if (question.publisher.engine === engine) question.answer = null;
  }

  /** Something happens on some connection; false: nothing could. */
  move(): boolean {
    this.#connections = this.#connections.filter(({ life }) => life !== "closed");
    this.#questions = this.#questions.filter(({ open }) => open);
    const all = this.#connections.length + this.#questions.length;
    for (let tries = 0; tries < 2 * all; tries++) {
      const at = this.#random.below(all);
      const connection = this.#connections[at];
      const question = this.#questions[at - this.#connections.length];
      if (connection === undefined ? this.#answer(question!) : this.#deliver(connection)) return true;
    }
    return false;
  }

  #deliver(connection: Connection): boolean {
    if (connection.life === "dead" || connection.life === "closed") return false;
    if (!connection.greeted) {
      connection.greeted = true;
      connection.events.connected();
      return true;
    }
    const message = connection.queue.shift();
    if (message !== undefined) connection.events.message(message);
    else if (connection.life === "closing") connection.events.disconnected("cut");
    else return false;
    return true;
  }

  #answer(question: Question): boolean {
    if (!question.open) return false;
    const { publisher, fromSeq, events } = question;
    if (question.answer === null) {
      if (this.#unlucky(0.1)) return false;
      const { engine, replayBatches, topic } = publisher;
      const batches = engine.log.slice(-replayBatches).filter(({ seq }) => seq >= fromSeq);
      question.answer = batches.map(({ seq, payload }) => [Buffer.of(), Buffer.from(topic), seqBytes(seq), payload]);
    }
    const message = question.answer.shift();
    if (message === undefined) {
      question.answer = [];
      if (this.#unlucky(0.1)) return false;
      events.message(END);
      return true;
    }
    if (this.#unlucky(0.05)) return true;
    events.message(message);
    if (this.#unlucky(0.05)) events.message(message);
    return true;
  }

  #unlucky(share: number): boolean {
    return this.#random.next() < share && !this.behaves;
  }
}

function seqBytes(seq: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(seq));
  return bytes;
}
