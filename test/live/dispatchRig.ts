// What the tests of the data path share: engines that do exactly what a script says, a scheduler that counts, and the
// server and carrier between them, over real sockets.
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { processClock } from "#src/determinism/clock.ts";
import { processTimers } from "#src/determinism/timers.ts";
import type { Attempt, Call } from "#src/dispatch/call.ts";
import { Carrier } from "#src/dispatch/carrier.ts";
import { Deadlines } from "#src/dispatch/deadlines.ts";
import type { LegLimits } from "#src/dispatch/legLimits.ts";
import type { PlaceOptions, Placed, SchedulerPort } from "#src/dispatch/schedulerPort.ts";
import { Upstreams } from "#src/dispatch/upstreams.ts";
import type { UpstreamOptions } from "#src/dispatch/upstreamOptions.ts";
import { toHttpError } from "#src/errors/openAiError.ts";
import { RouterError } from "#src/errors/routerError.ts";
import { HTTP_LIMITS } from "#src/gateway/http/httpLimits.ts";
import type { HttpLimits } from "#src/gateway/http/httpLimits.ts";
import { HttpServer } from "#src/gateway/http/httpServer.ts";
import type { HttpServerOptions } from "#src/gateway/http/httpServer.ts";
import { EMPTY_HASHES } from "#src/request/identity.ts";
import type { AttemptOutcome } from "#src/scheduler/outcome.ts";

/** One request as an engine received it. */
export interface Received {
  readonly socket: Socket;
  /** Number of the connection it came over, and of the request on that connection; from 0. */
  readonly connection: number;
  readonly nth: number;
  /** Start line and headers as sent. */
  readonly head: string;
  readonly body: Buffer;
}

/** An engine that reads whole requests and leaves the rest to its script. */
export class ScriptedEngine {
  readonly received: Received[] = [];
  readonly sockets = new Set<Socket>();
  readonly #server: Server;
  #connections = 0;

  private constructor(script: (request: Received) => void) {
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket, script));
  }

  static async start(script: (request: Received) => void): Promise<ScriptedEngine> {
    const engine = new ScriptedEngine(script);
    engine.#server.listen(0, "127.0.0.1");
    await once(engine.#server, "listening");
    return engine;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get connections(): number {
    return this.#connections;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, "close");
  }

  #accept(socket: Socket, script: (request: Received) => void): void {
    const connection = this.#connections++;
    let nth = 0;
    let pending = Buffer.alloc(0);
    this.sockets.add(socket);
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => {});
    socket.on("data", (bytes: Buffer) => {
      pending = Buffer.concat([pending, bytes]);
      for (;;) {
        const end = pending.indexOf("\r\n\r\n");
        if (end < 0) return;
        const head = pending.toString("latin1", 0, end + 4);
        const length = Number(/^content-length: (\d+)\r$/imu.exec(head)?.[1] ?? 0);
        if (pending.length < end + 4 + length) return;
        const body = Buffer.from(pending.subarray(end + 4, end + 4 + length));
        pending = pending.subarray(end + 4 + length);
        const request = { socket, connection, nth: nth++, head, body };
        this.received.push(request);
        script(request);
      }
    });
  }
}

/** A sized JSON answer. */
export function json(value: unknown, status = "200 OK", headers = ""): string {
  const body = JSON.stringify(value);
  return `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`;
}

export const STREAM_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
export const LAST_CHUNK = "0\r\n\r\n";

export function chunk(bytes: string | Buffer): Buffer {
  const body = Buffer.from(bytes);
  return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n")]);
}

export interface CountedPlacement extends Placed {
  readonly attempt: number;
  readonly options: PlaceOptions;
}

interface Waiting {
  readonly settle: (result: CountedPlacement | RouterError) => void;
  readonly options: PlaceOptions;
}

/** Gives out replicas in turn, those excluded left out, and keeps books of what it gave. */
export class CountingScheduler implements SchedulerPort<CountedPlacement, Waiting> {
  readonly replicas: Placed["replica"][];
  readonly outcomes: AttemptOutcome[] = [];
  readonly live = new Set<CountedPlacement>();
  readonly waiting = new Set<Waiting>();
  /** False: requests wait until `release`. */
  open = true;
  firstTokens = 0;
  finishedTwice = 0;
  /** A request that still waits after so many attempts has waited too long. */
  maxAttempts = 10;
  #turn = 0;

  constructor(replicas: Placed["replica"][]) {
    this.replicas = replicas;
  }

  submit(
    _request: unknown,
    _nowMs: number,
    settle: (result: CountedPlacement | RouterError) => void,
    options: PlaceOptions,
  ): Waiting {
    const ticket = { settle, options };
    if (this.open) this.#bind(ticket);
    else this.waiting.add(ticket);
    return ticket;
  }

  cancel(ticket: Waiting): void {
    this.waiting.delete(ticket);
  }

  release(): void {
    this.open = true;
    for (const ticket of this.waiting) this.#bind(ticket);
    this.waiting.clear();
  }

  prefilled(): void {}

  firstToken(): void {
    this.firstTokens++;
  }

  progress(): void {}

  finish(placement: CountedPlacement, outcome: AttemptOutcome): void {
    if (!this.live.delete(placement)) this.finishedTwice++;
    this.outcomes.push(outcome);
  }

  #bind(ticket: Waiting): void {
    const { excluded, attempt } = ticket.options;
    const candidates = this.replicas.filter((replica) => !excluded.has(replica.id));
    const replica = candidates[this.#turn++ % candidates.length];
    if (replica === undefined || attempt > this.maxAttempts) {
      const code = replica === undefined ? "no_replica_available" : "queue_timeout";
      ticket.settle(new RouterError(code, "none", { fault: "router", httpStatus: 503, retryable: true }));
      return;
    }
    const placement = { replica, attempt, options: ticket.options };
    this.live.add(placement);
    ticket.settle(placement);
  }
}

export interface RigOptions {
  readonly engines: readonly string[];
  readonly limits?: Partial<LegLimits>;
  readonly http?: Partial<HttpLimits>;
  readonly upstream?: Partial<UpstreamOptions>;
  readonly call?: Partial<Call<CountedPlacement>>;
  readonly server?: Partial<Pick<HttpServerOptions, "admit" | "handle" | "tls">>;
  readonly maxRetries?: number;
  readonly replica?: Partial<Placed["replica"]>;
}

/** Server, carrier and connections as the gateway puts them together, with limits that suit a test. */
export class Rig {
  readonly scheduler: CountingScheduler;
  readonly upstreams: Upstreams;
  readonly carrier: Carrier<CountedPlacement, Waiting>;
  readonly server: HttpServer;
  readonly deadlines: Deadlines;
  readonly attempts: Attempt<CountedPlacement>[] = [];
  readonly #options: RigOptions;
  port = 0;
  #id = 0;

  private constructor(options: RigOptions) {
    this.#options = options;
    const clock = processClock;
    this.deadlines = new Deadlines({ clock, timers: processTimers, granularityMs: 10 });
    this.upstreams = new Upstreams({ clock, deadlines: this.deadlines, ...options.upstream });
    this.scheduler = new CountingScheduler(
      options.engines.map((url) => ({
        id: url,
        endpoint: { url, apiKey: null },
        rank: null,
        profile: null,
        ...options.replica,
      })),
    );
    this.carrier = new Carrier({
      scheduler: this.scheduler,
      upstreams: this.upstreams,
      clock,
      maxRetries: options.maxRetries ?? 2,
    });
    this.server = new HttpServer({
      limits: { ...HTTP_LIMITS, ...options.http },
      clock,
      deadlines: this.deadlines,
      admit: () => null,
      render: (error) => toHttpError(error, "-"),
      handle: (request, downstream) => this.#handle(request, downstream),
      ...options.server,
    });
  }

  static async start(options: RigOptions): Promise<Rig> {
    const rig = new Rig(options);
    rig.port = (await rig.server.listen({ host: "127.0.0.1", port: 0 })).port;
    return rig;
  }

  async stop(): Promise<void> {
    this.carrier.abortAll();
    this.upstreams.close();
    await this.server.close();
  }

  #handle: HttpServerOptions["handle"] = ({ head, body, release }, downstream) => {
    const nowMs = processClock.nowMs();
    const request = {
      id: `req-${String(this.#id++).padStart(8, "0")}`,
      model: "m",
      adapter: null,
      identity: {
        hashes: EMPTY_HASHES,
        blockTokens: 16,
        promptTokens: 0,
        promptBytes: 0,
        approximate: true,
        unhashable: null,
      },
      maxOutputTokens: null,
      sequences: 1,
      session: null,
      tenant: "anonymous",
      className: "default",
      arrivedMs: nowMs,
      deadlineMs: Number.POSITIVE_INFINITY,
      bodyBytes: body.length,
      generates: true,
    };
    const call: Call<CountedPlacement> = {
      request,
      method: head.method,
      target: head.target,
      headers: head.headers,
      body: () => [body],
      downstream,
      limits: { connectMs: 5000, firstTokenMs: null, idleMs: null, totalMs: null, ...this.#options.limits },
      streamed: true,
      stripUsage: false,
      onAttempt: (attempt) => this.attempts.push(attempt),
      ...this.#options.call,
    };
    void this.carrier.carry(call).then(({ error, bodyFree }) => {
      if (bodyFree) release();
      if (error === null || downstream.started || !downstream.open) return;
      const answer = toHttpError(error, request.id);
      const bytes = Buffer.from(answer.body);
      const headers = [...Object.entries(answer.headers).flat(), "content-length", String(bytes.length)];
      downstream.start(answer.status, headers, "length");
      downstream.write(bytes);
      downstream.end();
    });
  };
}

/** What came back over a connection, as bytes. */
export interface RawAnswer {
  readonly text: string;
  /** The connection ended with an error, or was reset. */
  readonly broken: boolean;
}

/** Sends bytes as they are and reads until the other side closes, or until `until` says that it has enough. */
export function talk(
  port: number,
  bytes: string | Buffer | readonly (string | Buffer)[],
  until: (text: string) => boolean = () => false,
): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    let text = "";
    let broken = false;
    const finish = (): void => {
      socket.destroy();
      resolve({ text, broken });
    };
    socket.on("connect", () => {
      for (const part of Array.isArray(bytes) ? bytes : [bytes]) socket.write(part as string | Buffer);
    });
    socket.on("data", (data: Buffer) => {
      text += data.toString("latin1");
      if (until(text)) finish();
    });
    socket.on("error", () => (broken = true));
    socket.on("end", finish);
    socket.on("close", finish);
  });
}

/** A POST with a JSON body; `Connection: close` unless told otherwise. */
export function post(body = "{}", headers = "Connection: close\r\n", target = "/v1/chat/completions"): string {
  return `POST ${target} HTTP/1.1\r\nHost: router\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`;
}

/** Body of a raw answer, unframed where it is chunked. */
export function bodyOf(text: string): string {
  const at = text.indexOf("\r\n\r\n") + 4;
  if (!/^transfer-encoding: chunked\r$/imu.test(text.slice(0, at))) return text.slice(at);
  let body = "";
  for (let i = at; i < text.length;) {
    const end = text.indexOf("\r\n", i);
    const length = Number.parseInt(text.slice(i, end), 16);
    if (Number.isNaN(length) || length === 0) break;
    body += text.slice(end + 2, end + 2 + length);
    i = end + 2 + length + 2;
  }
  return body;
}

/** Polls until it holds; fails after a bound that only a broken build reaches. */
export async function eventually(holds: () => boolean, what: string): Promise<void> {
  const giveUpMs = performance.now() + 10_000;
  while (!holds()) {
    if (performance.now() > giveUpMs) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
