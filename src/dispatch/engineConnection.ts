import { connect as connectTcp } from "node:net";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Deadline } from "./deadlines.ts";
import { closedEarly, malformedAnswer } from "./failures.ts";
import { headerValue } from "./headers.ts";
import { HttpParser } from "./httpParser.ts";
import type { HeadLimits, MessageHandler } from "./httpParser.ts";
import type { Origin } from "./origin.ts";
import { toRouterError } from "#src/errors/routerError.ts";
import type { RouterError } from "#src/errors/routerError.ts";

/** Receives one answer. Exactly one of `onEnd` and `onLost` is called last, unless the connection was aborted. */
export interface ResponseHandler {
  onHead(head: HttpParser): "body" | "no_body";
  /** The bytes are valid until `onReadDone` or `onEnd` has returned. */
  onBody(bytes: Buffer, start: number, end: number): void;
  /** All that one read brought was handed over. False: read no more until `resume`. */
  onReadDone(): boolean;
  /** `sent`: the request had left completely, and no socket holds its bytes any more. */
  onEnd(sent: boolean): void;
  onLost(loss: Loss): void;
  /** The connection's deadline, which the handler moves, has passed. */
  onDeadline(nowMs: number): void;
}

/** A connection that ended before its answer did. */
export interface Loss {
  readonly error: RouterError;
  /** The engine closed the connection, idle until then, without having read the request: not a failure of its own. */
  readonly stale: boolean;
}

/** The pool that a connection belongs to. */
export interface ConnectionOwner {
  onConnected(connection: EngineConnection): void;
  /** An answer was received whole and the connection may carry another. */
  onIdle(connection: EngineConnection, keepAliveSeconds: number | null): void;
  onClosed(connection: EngineConnection, cause: Error | null): void;
  onIdleTooLong(connection: EngineConnection): void;
}

/** TLS towards engines. Certificates are verified unless the configuration says otherwise. */
export interface EngineTls {
  readonly ca?: string | readonly string[];
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** A body up to this size is copied behind its head: one small copy costs less than a gathering write. */
const JOIN_BYTES = 16_384;
const EMPTY = Buffer.alloc(0);
/** After a FIN: how long the reset that says "closed before the request came" may be on its way; two far round trips. */
const RESET_WAIT_MS = 100;
/** What a peer's kernel answers to bytes that nobody will read any more. */
const REFUSED: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

/** Reading is synchronous, so one buffer serves every connection, and a stream's event costs no allocation. */
const readBuffer = Buffer.allocUnsafeSlow(65_536);

/** One keep-alive connection to an engine; carries one exchange at a time. */
export class EngineConnection implements MessageHandler, Deadline {
  /** While idle: until when it stays open. While in use it belongs to the handler. Watched for as long as it lives. */
  deadlineMs = Number.POSITIVE_INFINITY;
  idleSinceMs = 0;
  reused = false;

  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly #parser: HttpParser;
  readonly #tls: boolean;
  #handler: ResponseHandler | null = null;
  #informational = false;
  #answerBegan = false;
  #complete = false;
  #cause: NodeJS.ErrnoException | null = null;
  #closed = false;

  constructor(origin: Origin, owner: ConnectionOwner, headLimits: HeadLimits, tls: EngineTls) {
    this.#owner = owner;
    this.#tls = origin.tls;
    this.#parser = new HttpParser("response", this, headLimits);
    const options = {
      host: origin.hostname,
      port: origin.port,
      noDelay: true,
      allowHalfOpen: true,
      onread: { buffer: readBuffer, callback: (bytes: number) => this.#onRead(bytes) },
    };
    this.#socket = origin.tls ? connectTls({ ...options, ...tlsOptions(origin, tls) }) : connectTcp(options);
    this.#socket.once(origin.tls ? "secureConnect" : "connect", () => owner.onConnected(this));
    this.#socket.on("end", () => this.#onEndOfStream());
    this.#socket.on("error", (cause: Error) => (this.#cause ??= cause));
    this.#socket.once("close", () => this.#onClose());
  }

  /** False: closed, or closing. */
  get usable(): boolean {
    return !this.#closed && !this.#socket.destroyed;
  }

  /** Sends a request, head and body together. */
  send(head: string, body: readonly Buffer[], handler: ResponseHandler): void {
    this.#handler = handler;
    this.#answerBegan = false;
    this.#complete = false;
    const socket = this.#socket;
    let bodyBytes = 0;
    for (const part of body) bodyBytes += part.length;
    if (bodyBytes <= JOIN_BYTES) {
      const joined = Buffer.allocUnsafe(head.length + bodyBytes);
      let at = joined.write(head, 0, "latin1");
      for (const part of body) at += part.copy(joined, at);
      socket.write(joined);
      return;
    }
    socket.cork();
    socket.write(head, "latin1");
    for (const part of body) socket.write(part);
    socket.uncork();
  }

  /** Reads on after `onReadDone` returned false. */
  resume(): void {
    this.#socket.resume();
  }

  /** Closes at once, which tells the engine to stop working; the handler hears nothing more. */
  abort(): void {
    this.#handler = null;
    this.#closed = true;
    this.#socket.destroy();
  }

  onDeadline(nowMs: number): void {
    if (this.#handler !== null) this.#handler.onDeadline(nowMs);
    else this.#owner.onIdleTooLong(this);
  }

  // MessageHandler

  onHead(parser: HttpParser): "body" | "no_body" | "refuse" {
    this.#informational = parser.statusCode < 200;
    // A switch of protocols was never asked for; another 1xx only announces the answer.
    if (parser.statusCode === 101 || this.#handler === null) return "refuse";
    return this.#informational ? "body" : this.#handler.onHead(parser);
  }

  onBody(bytes: Buffer, start: number, end: number): void {
    this.#handler?.onBody(bytes, start, end);
  }

  onComplete(): boolean {
    if (this.#informational) return false;
    this.#complete = true;
    return true;
  }

  #onRead(length: number): boolean {
    // Bytes that nobody asked for: the next answer could not be told from them.
    if (this.#handler === null) {
      this.abort();
      return false;
    }
    this.#answerBegan = true;
    try {
      const result = this.#parser.execute(readBuffer, 0, length);
      if (!result.ok)
        this.#lose(malformedAnswer(result.tooLarge ? "its headers are too large or too many" : result.reason));
      else if (this.#complete) this.#answered(result.used === length);
      else return this.#handler?.onReadDone() ?? false;
    } catch (caught) {
      // A mistake of the router's own costs this request, not the process and with it everybody's.
      this.#lose(toRouterError(caught));
    }
    return true;
  }

  #answered(nothingLeft: boolean): void {
    if (this.#socket.writableLength === 0) {
      this.#finish(nothingLeft);
      return;
    }
    // The answer to a large request is often read before the socket reports that the last bytes of the request have left.
    this.#handler?.onReadDone();
    setImmediate(() => this.#finish(nothingLeft));
  }

  #finish(reusable: boolean): void {
    const handler = this.#handler;
    if (handler === null) return;
    this.#handler = null;
    // An engine may answer before it has read the whole request; what follows would then be read as its rest.
    const sent = this.#socket.writableLength === 0;
    if (sent && reusable && this.#parser.keepAlive && !this.#closed) {
      this.reused = true;
      this.#owner.onIdle(this, keepAliveSeconds(this.#parser.headers));
    } else {
      this.abort();
    }
    handler.onEnd(sent);
  }

  #onEndOfStream(): void {
    this.#closed = true;
    if (this.#handler === null) {
      this.#socket.destroy();
      return;
    }
    if (!this.#complete) this.#parser.finish();
    if (this.#complete) {
      this.#finish(false);
      return;
    }
    if (this.#answerBegan || this.#tls || !this.reused) this.#lose(closedEarly(null));
    else this.#probe(() => setTimeout(() => this.#probe(() => this.#lose(closedEarly(null))), RESET_WAIT_MS));
  }

  /**
   * Had the engine closed before it read the request, its kernel refuses the bytes, and from then on a write of nothing
   * fails, which closes the socket. `notRefused`: it did not fail.
   */
  #probe(notRefused: () => void): void {
    if (this.#handler === null) return;
    this.#socket.write(EMPTY, (refusal) => {
      if (!(refusal instanceof Error)) notRefused();
    });
  }

  #onClose(): void {
    this.#closed = true;
    if (this.#complete) this.#finish(false);
    else this.#lose(closedEarly(this.#cause));
    this.#parser.free();
    this.#owner.onClosed(this, this.#cause);
  }

  #lose(error: RouterError): void {
    const handler = this.#handler;
    const code = this.#cause?.code ?? "";
    const stale = this.reused && !this.#answerBegan && REFUSED.has(code);
    this.abort();
    handler?.onLost({ error, stale });
  }
}

function keepAliveSeconds(headers: readonly string[]): number | null {
  const value = headerValue(headers, "keep-alive");
  const seconds = value === null ? null : /(?:^|[,;\s])timeout\s*=\s*"?(\d{1,6})/iu.exec(value)?.[1];
  return seconds === null || seconds === undefined ? null : Number(seconds);
}

function tlsOptions(origin: Origin, tls: EngineTls): Record<string, unknown> {
  const isAddress = origin.hostname.includes(":") || /^[\d.]+$/u.test(origin.hostname);
  return {
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    // A server name may not be an address.
    ...(tls.servername === undefined
      ? isAddress
        ? {}
        : { servername: origin.hostname }
      : { servername: tls.servername }),
    rejectUnauthorized: tls.rejectUnauthorized ?? true,
    ALPNProtocols: ["http/1.1"],
  };
}
