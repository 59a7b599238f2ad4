/** Where one rank publishes, and how it is reached. */
export interface KvEventAddress {
  /** ZeroMQ address of the publisher, e.g. `tcp://10.0.0.1:5557`. */
  readonly events: string;
  /** Null: the engine repeats nothing. */
  readonly replay: string | null;
  /** Topics that begin so are subscribed to; empty: all. */
  readonly topic: string;
  /** The engine connects to this address instead of the other way round. */
  readonly bind: boolean;
}

export interface SubscriptionEvents {
  connected(): void;
  disconnected(why: string): void;
  message(frames: readonly Buffer[]): void;
}

export interface ReplayEvents {
  message(frames: readonly Buffer[]): void;
  failed(why: string): void;
}

/** A closed one reports nothing more. */
export interface OpenSocket {
  close(): void;
}

/** The sockets of a stream; tests have others. Neither call throws: what goes wrong is reported. */
export interface StreamSockets {
  subscribe(address: KvEventAddress, events: SubscriptionEvents): OpenSocket;
  /** One question each, so that a late answer to another cannot be taken for its own. */
  askReplay(address: string, fromSeq: number, events: ReplayEvents): OpenSocket;
}
