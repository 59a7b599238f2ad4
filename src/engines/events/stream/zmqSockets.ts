import { Dealer, Subscriber } from "zeromq";
import type { OpenSocket, StreamSockets } from "./sockets.ts";

/** Messages that a socket keeps before the loop has come to them: the replay window of an engine and room to spare. */
const RECEIVE_HIGH_WATER_MARK = 16_384;

/** A thousand times a usual batch; a peer that sends more is cut off. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** A receive that finds a message returns without a turn of the event loop, which would starve everything else. */
const MESSAGES_A_TURN = 64;

/** A host that vanished without a word is noticed after the time-out. */
const HEARTBEAT_EVERY_MS = 5000;
const HEARTBEAT_TIMEOUT_MS = 15_000;

const COMMON = {
  ipv6: true,
  linger: 0,
  // The stream waits and connects anew by itself, with sockets that know nothing of the old connection.
  reconnectInterval: -1,
  maxMessageSize: MAX_MESSAGE_BYTES,
  receiveHighWaterMark: RECEIVE_HIGH_WATER_MARK,
} as const;

export const zmqSockets: StreamSockets = {
  subscribe(address, events) {
    const socket = new Subscriber({
      ...COMMON,
      heartbeatInterval: HEARTBEAT_EVERY_MS,
      heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    });
    let open = true;
    const lost = (why: string) => open && events.disconnected(why);
    socket.events.on("handshake", () => open && events.connected());
    socket.events.on("disconnect", () => lost(`${address.events} closed the connection.`));
    socket.events.on("close", () => lost(`${address.events} cannot be reached.`));
    for (const type of ["handshake:error:protocol", "handshake:error:auth", "handshake:error:other"] as const) {
      socket.events.on(type, () => lost(`${address.events} does not speak ZeroMQ.`));
    }
    socket.subscribe(address.topic);
    const start = async (): Promise<void> => {
      if (address.bind) await socket.bind(address.events);
      else socket.connect(address.events);
      await receive(socket, (frames) => open && events.message(frames));
    };
    start().catch((caught: unknown) => lost(messageOf(caught)));
    return closing(socket, () => (open = false));
  },

  askReplay(address, fromSeq, events) {
    const socket = new Dealer({ ...COMMON, sendTimeout: 0 });
    let open = true;
    const failed = (why: string) => open && events.failed(why);
    socket.events.on("close", () => failed(`${address} cannot be reached.`));
    socket.events.on("disconnect", () => failed(`${address} closed the connection.`));
    const start = async (): Promise<void> => {
      socket.connect(address);
      const from = Buffer.alloc(8);
      from.writeBigUInt64BE(BigInt(fromSeq));
      await socket.send(["", from]);
      await receive(socket, (frames) => open && events.message(frames));
    };
    start().catch((caught: unknown) => failed(messageOf(caught)));
    return closing(socket, () => (open = false));
  },
};

async function receive(socket: Subscriber | Dealer, take: (frames: readonly Buffer[]) => void): Promise<void> {
  let messages = 0;
  for await (const frames of socket) {
    take(frames);
    if (++messages % MESSAGES_A_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

function closing(socket: Subscriber | Dealer, forget: () => void): OpenSocket {
  return {
    close() {
      forget();
      if (!socket.closed) socket.close();
    },
  };
}

function messageOf(caught: unknown): string {
  return caught instanceof Error ? caught.message : String(caught);
}
