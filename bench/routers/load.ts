// A bounded closed- or open-loop client over raw sockets: as little client cost as Node allows.
import { connect, type Socket } from "node:net";

export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  readonly kind: "unary2k" | "unary220k" | "stream";
  /** Stops after this many answers (closed loop). */
  readonly requests: number;
  /** Open loop: requests per second over all connections; null: as fast as answers come. */
  readonly ratePerS: number | null;
}

export interface LoadResult {
  readonly answers: number;
  readonly events: number;
  readonly failures: number;
  readonly firstByteMs: Float64Array;
}

const WORDS = "the router carries every prompt to the replica that already holds its prefix ".split(" ");

/** About `bytes` of chat body in JSON; `marker` is a fixed-width place that makes the prompt unique. */
function chatBody(bytes: number, streamed: boolean, conversation: number): { body: Buffer; markerAt: number } {
  const messages: { role: string; content: string }[] = [
    { role: "system", content: `You are assistant ${conversation % 4}. Answer briefly.\nUse "plain" words.` },
  ];
  let size = 200;
  for (let turn = 0; size < bytes - 400; turn++) {
    let content = `Turn ${turn} of conversation ${conversation}.\n`;
    while (content.length < Math.min(5000, bytes - size - 300))
      content += `${WORDS[(turn + content.length) % WORDS.length]} `;
    if (turn % 3 === 0) content += 'He said "yes" — naïve café 🙂\n';
    messages.push({ role: turn % 2 === 0 ? "user" : "assistant", content });
    size += content.length + 40;
  }
  messages.push({ role: "user", content: "MARK00000000 what next?" });
  const body = Buffer.from(
    JSON.stringify({ stream: streamed, model: "bench-model", messages, max_tokens: 100, temperature: 0.7 }),
  );
  return { body, markerAt: body.lastIndexOf("MARK") + 4 };
}

function templates(kind: LoadOptions["kind"]): { bytes: Buffer; markerAt: number }[] {
  const size = kind === "unary220k" ? 220_000 : 2_000;
  return Array.from({ length: kind === "unary220k" ? 16 : 64 }, (_, conversation) => {
    const { body, markerAt } = chatBody(size, kind === "stream", conversation);
    const head = Buffer.from(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nAuthorization: Bearer none\r\n\r\n`,
    );
    return { bytes: Buffer.concat([head, body]), markerAt: head.length + markerAt };
  });
}

interface Exchange {
  readonly socket: Socket;
  sentMs: number;
  awaitingFirst: boolean;
  bodyLeft: number;
  head: string;
  chunked: boolean;
  tail: string;
}

export function runLoad(options: LoadOptions): Promise<LoadResult> {
  const bodies = templates(options.kind);
  const firstByteMs: number[] = [];
  let started = 0;
  let answers = 0;
  let events = 0;
  let failures = 0;
  const idle: Exchange[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<LoadResult>();
  const sockets: Socket[] = [];
  let timer: NodeJS.Timeout | null = null;

  const finish = (): void => {
    if (timer !== null) clearInterval(timer);
    for (const socket of sockets) socket.destroy();
    resolve({ answers, events, failures, firstByteMs: Float64Array.from(firstByteMs).sort() });
  };

  const send = (exchange: Exchange): void => {
    const template = bodies[started % bodies.length];
    if (template === undefined) throw new Error("no body");
    template.bytes.write(String(started).padStart(8, "0"), template.markerAt, "latin1");
    started++;
    exchange.sentMs = performance.now();
    exchange.awaitingFirst = true;
    exchange.head = "";
    exchange.bodyLeft = -1;
    exchange.tail = "";
    // A copy: the template is patched again before the kernel may have taken these bytes.
    exchange.socket.write(Buffer.from(template.bytes));
  };

  const next = (exchange: Exchange): void => {
    if (answers >= options.requests) {
      finish();
    } else if (options.ratePerS !== null) {
      idle.push(exchange);
    } else if (started < options.requests) {
      send(exchange);
    }
  };

  const onBytes = (exchange: Exchange, bytes: Buffer): void => {
    if (exchange.awaitingFirst) {
      exchange.awaitingFirst = false;
      firstByteMs.push(performance.now() - exchange.sentMs);
    }
    let body = bytes;
    if (exchange.bodyLeft === -1) {
      exchange.head += bytes.toString("latin1");
      const end = exchange.head.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = exchange.head.slice(0, end).toLowerCase();
      if (!head.startsWith("http/1.1 200")) {
        failures++;
        if (failures === 1) console.error(`unexpected answer: ${exchange.head.slice(0, 400)}`);
      }
      const length = /content-length: (\d+)/.exec(head);
      exchange.chunked = length === null;
      body = Buffer.from(exchange.head.slice(end + 4), "latin1");
      exchange.bodyLeft = exchange.chunked ? Number.POSITIVE_INFINITY : Number(length?.[1]);
    }
    if (exchange.chunked) {
      const text = body.toString("latin1");
      for (let at = text.indexOf("data:"); at >= 0; at = text.indexOf("data:", at + 5)) events++;
      exchange.tail = (exchange.tail + text).slice(-16);
      if (!exchange.tail.endsWith("0\r\n\r\n")) return;
    } else {
      exchange.bodyLeft -= body.length;
      if (exchange.bodyLeft > 0) return;
    }
    answers++;
    next(exchange);
  };

  for (let i = 0; i < options.connections; i++) {
    const socket = connect({ port: options.port, host: "127.0.0.1", noDelay: true });
    const exchange: Exchange = {
      socket,
      sentMs: 0,
      awaitingFirst: false,
      bodyLeft: -1,
      head: "",
      chunked: false,
      tail: "",
    };
    sockets.push(socket);
    socket.on("connect", () =>
      options.ratePerS === null ? started < options.requests && send(exchange) : idle.push(exchange),
    );
    socket.on("data", (bytes) => onBytes(exchange, bytes));
    socket.on("error", reject);
    socket.on("close", () => {
      if (answers < options.requests) reject(new Error("the router closed a connection"));
    });
  }
  if (options.ratePerS !== null) {
    const everyMs = 1000 / options.ratePerS;
    let dueMs = performance.now() + everyMs;
    timer = setInterval(() => {
      while (performance.now() >= dueMs && started < options.requests) {
        const exchange = idle.pop();
        if (exchange === undefined) break;
        dueMs += everyMs;
        send(exchange);
      }
    }, 1);
  }
  return promise;
}

if (import.meta.main) {
  const [port, kind, requests, connections, rate] = process.argv.slice(2);
  const result = await runLoad({
    port: Number(port),
    kind: kind as LoadOptions["kind"],
    requests: Number(requests),
    connections: Number(connections),
    ratePerS: rate === undefined ? null : Number(rate),
  });
  const at = (share: number): number => result.firstByteMs[Math.floor(share * (result.firstByteMs.length - 1))] ?? 0;
  console.log(
    JSON.stringify({
      answers: result.answers,
      events: result.events,
      failures: result.failures,
      firstByteP50Ms: at(0.5),
      firstByteP99Ms: at(0.99),
    }),
  );
  process.exit(0);
}
