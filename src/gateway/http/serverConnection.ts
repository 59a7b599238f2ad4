import type { Socket } from "node:net";
import type { Deadline } from "#src/dispatch/deadlines.ts";
import { headerValue } from "#src/dispatch/headers.ts";
import { HttpParser } from "#src/dispatch/httpParser.ts";
import type { MessageHandler } from "#src/dispatch/httpParser.ts";
import { toRouterError } from "#src/errors/routerError.ts";
import { bodyTooLarge } from "#src/errors/shared.ts";
import type { RouterError } from "#src/errors/routerError.ts";
import { BodyCollector } from "./bodyCollector.ts";
import type { BodyPool } from "./bodyPool.ts";
import { HttpHead } from "./httpRequest.ts";
import type { HttpServerOptions } from "./httpServer.ts";
import {
  badRequest,
  checkHead,
  contentLength,
  headersTooLarge,
  originForm,
  overloaded,
  requestTimeout,
} from "./requestCheck.ts";
import { ResponseWriter } from "./responseWriter.ts";
import { readShared } from "./sharedRead.ts";

/**
 * Bytes of later requests that a client may send ahead while one is answered. What comes beyond is dropped, and the
 * connection closes with that answer: a client that is not read any more could leave unseen, while an engine computes.
 */
const AHEAD_MAX_BYTES = 65_536;
/** How long a refused client is still listened to, so that it can read why: a reset would take the answer with it. */
const LINGER_MS = 2000;

const NOTHING = Buffer.alloc(0);

type State = "idle" | "receiving" | "answering" | "lingering" | "closed";

/** One client connection: one request after the other. */
export class ServerConnection implements MessageHandler, Deadline {
  deadlineMs: number;
  readonly #options: HttpServerOptions;
  readonly #socket: Socket;
  readonly #parser: HttpParser;
  readonly #draining: () => boolean;
  readonly #remoteAddress: string;
  readonly #pool: BodyPool;
  #state: State = "idle";
  #beganMs = 0;
  #head: HttpHead | null = null;
  #body: BodyCollector | null = null;
  /** Bytes of the current request's body that are counted as held. */
  #heldBytes = 0;
  #complete = false;
  #refusal: RouterError | null = null;
  #writer: ResponseWriter | null = null;
  #ahead: Buffer[] = [];
  #aheadBytes = 0;

  constructor(
    accepted: Socket,
    options: HttpServerOptions,
    pool: BodyPool,
    draining: () => boolean,
    closed: () => void,
  ) {
    this.#pool = pool;
    const socket = readShared(accepted, (bytes, length) => this.#onRead(bytes, length));
    this.#socket = socket;
    this.#options = options;
    this.#draining = draining;
    this.#remoteAddress = socket.remoteAddress ?? "";
    this.#parser = new HttpParser("request", this, options.limits);
    this.deadlineMs = options.clock.nowMs() + options.limits.headersMs;
    options.deadlines.watch(this);
    socket.on("drain", () => this.#writer?.drained());
    // A client that stops sending has left: none that speaks HTTP half-closes, and a prompt is too dear to find out.
    socket.on("end", () => this.#onEnd());
    socket.on("error", () => this.#destroy());
    socket.on("close", () => {
      this.#destroy();
      this.#parser.free();
      options.deadlines.unwatch(this);
      closed();
    });
    socket.resume();
  }

  /** Closes it if no request is under way; else its answer will say that it closes. */
  drain(): void {
    if (this.#state === "idle") this.#destroy();
  }

  destroy(): void {
    this.#destroy();
  }

  onDeadline(): void {
    if (this.#state === "receiving") this.#refuse(requestTimeout());
    else this.#destroy();
  }

  // MessageHandler

  onHead(parser: HttpParser): "body" | "refuse" {
    const { limits, clock, admit } = this.#options;
    const bodyBytes = contentLength(parser);
    this.#refusal = checkHead(parser, limits.maxBodyBytes);
    if (this.#refusal === null) {
      this.#head = new HttpHead({
        method: parser.method,
        target: originForm(parser.target) ?? "/",
        headers: parser.headers,
        remoteAddress: this.#remoteAddress,
        bodyBytes,
        arrivedMs: clock.nowMs(),
      });
      this.#refusal = admit(this.#head) ?? this.#hold(bodyBytes ?? 0);
    }
    if (this.#refusal !== null) return "refuse";
    this.#body = bodyBytes === 0 ? null : new BodyCollector(bodyBytes, limits.maxBodyBytes, this.#pool);
    if (parser.minorVersion === 1 && headerValue(parser.headers, "expect") !== null) {
      this.#socket.write("HTTP/1.1 100 Continue\r\n\r\n");
    }
    return "body";
  }

  onBody(bytes: Buffer, start: number, end: number): void {
    if (this.#refusal !== null) return;
    if (this.#head?.bodyBytes === null) this.#refusal = this.#hold(end - start);
    if (this.#body?.add(bytes, start, end) === false) this.#refusal = bodyTooLarge(this.#options.limits.maxBodyBytes);
  }

  onComplete(): boolean {
    this.#complete = true;
    return true;
  }

  #hold(bytes: number): RouterError | null {
    if (!this.#pool.hold(bytes, this.#options.limits.maxHeldBytes)) return overloaded();
    this.#heldBytes += bytes;
    return null;
  }

  #letGo(): void {
    this.#pool.letGo(this.#heldBytes);
    this.#heldBytes = 0;
  }

  #onRead(bytes: Buffer, length: number): void {
    if (this.#state === "answering") this.#keepAhead(bytes.subarray(0, length));
    else if (this.#state === "idle" || this.#state === "receiving") this.#receive(bytes, length);
  }

  #receive(bytes: Buffer, length: number): void {
    const result = this.#parser.execute(bytes, 0, length);
    if (this.#refusal !== null) this.#refuse(this.#refusal);
    else if (!result.ok) this.#refuse(result.tooLarge ? headersTooLarge() : badRequest(`Not HTTP: ${result.reason}.`));
    else if (this.#complete) {
      if (result.used < length) this.#keepAhead(bytes.subarray(result.used, length));
      this.#answer();
    } else if (this.#parser.inMessage) this.#awaitRest();
  }

  #awaitRest(): void {
    const { limits, clock } = this.#options;
    if (this.#state === "idle") {
      this.#state = "receiving";
      this.#beganMs = clock.nowMs();
    }
    this.deadlineMs = this.#beganMs + (this.#head === null ? limits.headersMs : limits.requestMs);
  }

  #onEnd(): void {
    // While lingering it is the answer to our own closing; what is left to send still goes out.
    if (this.#state !== "lingering" || this.#socket.writableFinished) this.#destroy();
  }

  #keepAhead(bytes: Buffer): void {
    this.#aheadBytes += bytes.length;
    if (this.#tooFarAhead) this.#ahead = [];
    else this.#ahead.push(Buffer.from(bytes));
  }

  get #tooFarAhead(): boolean {
    return this.#aheadBytes > AHEAD_MAX_BYTES;
  }

  /** Whether the answer under way is this connection's last. */
  readonly #closing = (): boolean => this.#draining() || this.#tooFarAhead;

  #answer(): void {
    const head = this.#head;
    if (head === null) return;
    const collector = this.#body;
    const body = collector?.body() ?? NOTHING;
    this.#state = "answering";
    this.deadlineMs = Number.POSITIVE_INFINITY;
    this.#head = null;
    this.#body = null;
    this.#complete = false;
    const writer = this.#newWriter(head.method === "HEAD", this.#parser.keepAlive);
    this.#writer = writer;
    try {
      this.#options.handle({ head, body, release: () => collector?.release() }, writer);
    } catch (caught) {
      // A mistake of the router's own costs this request, not the process and with it everybody's.
      if (writer.started) writer.destroy();
      else this.#refuse(toRouterError(caught));
    }
  }

  #newWriter(head: boolean, keepAlive: boolean): ResponseWriter {
    const terms = { minorVersion: this.#parser.minorVersion ?? 1, head, keepAlive };
    return new ResponseWriter(this.#socket, terms, this.#closing, (reusable) => this.#onAnswered(reusable));
  }

  #onAnswered(reusable: boolean): void {
    if (this.#state !== "answering") return;
    this.#writer = null;
    this.#letGo();
    // Where the head had left before, another request was promised; the client must cope with that anyway.
    if (!reusable || this.#closing()) {
      this.#linger();
      return;
    }
    this.#state = "idle";
    this.deadlineMs = this.#options.clock.nowMs() + this.#options.limits.keepAliveMs;
    // Not at once: this may run within an engine connection's parser.
    if (this.#aheadBytes > 0) setImmediate(() => this.#next());
  }

  /** Goes on with what came while the last request was answered. */
  #next(): void {
    if (this.#state !== "idle" || this.#aheadBytes === 0) return;
    const bytes = Buffer.concat(this.#ahead);
    this.#ahead = [];
    this.#aheadBytes = 0;
    this.#receive(bytes, bytes.length);
  }

  /** Answers what is no acceptable request, and closes. */
  #refuse(error: RouterError): void {
    const { status, headers, body } = this.#options.render(error, this.#head);
    const bytes = Buffer.from(body);
    const writer = this.#newWriter(this.#parser.method === "HEAD", false);
    this.#state = "answering";
    writer.start(status, [...Object.entries(headers).flat(), "content-length", String(bytes.length)], "length");
    writer.write(bytes);
    writer.end();
  }

  /** Nothing more will be answered: sends what is left, and reads on for a while without listening. */
  #linger(): void {
    this.#state = "lingering";
    this.#ahead = [];
    this.deadlineMs = this.#options.clock.nowMs() + LINGER_MS;
    this.#socket.end();
  }

  #destroy(): void {
    if (this.#state === "closed") return;
    const writer = this.#writer;
    this.#state = "closed";
    this.#writer = null;
    this.#ahead = [];
    this.#letGo();
    this.#socket.destroy();
    writer?.gone();
  }
}
