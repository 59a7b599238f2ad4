import type {
  KvEventAddress,
  ReplayEvents,
  StreamSockets,
  SubscriptionEvents,
} from "#src/engines/events/stream/sockets.ts";

interface Subscription {
  readonly address: KvEventAddress;
  readonly events: SubscriptionEvents;
  closed: boolean;
}

interface Question {
  readonly address: string;
  readonly fromSeq: number;
  readonly events: ReplayEvents;
  closed: boolean;
}

/** Sockets whose other end is the test. */
export class FakeSockets implements StreamSockets {
  readonly subscriptions: Subscription[] = [];
  readonly questions: Question[] = [];

  get subscription(): Subscription {
    return last(this.subscriptions);
  }

  get question(): Question {
    return last(this.questions);
  }

  subscribe(address: KvEventAddress, events: SubscriptionEvents): { close(): void } {
    const subscription = { address, events, closed: false };
    this.subscriptions.push(subscription);
    return { close: () => void (subscription.closed = true) };
  }

  askReplay(address: string, fromSeq: number, events: ReplayEvents): { close(): void } {
    const question = { address, fromSeq, events, closed: false };
    this.questions.push(question);
    return { close: () => void (question.closed = true) };
  }

  /** Delivers a live batch. */
  hear(seq: number, payload: Buffer): void {
    this.subscription.events.message([Buffer.from("kv"), seqBytes(seq), payload]);
  }

  /** Delivers a batch of the replay. */
  repeat(seq: number, payload: Buffer): void {
    this.question.events.message([Buffer.of(), Buffer.from("kv"), seqBytes(seq), payload]);
  }

  endReplay(): void {
    this.question.events.message([Buffer.of(), Buffer.of(), Buffer.alloc(8, 0xff), Buffer.of()]);
  }
}

function seqBytes(seq: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(seq));
  return bytes;
}

function last<Item>(items: readonly Item[]): Item {
  const item = items.at(-1);
  if (item === undefined) throw new Error("nothing was opened yet");
  return item;
}
