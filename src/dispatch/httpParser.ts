import { Code, llhttp } from "./llhttp.ts";
import type { Callbacks, ParserHandle } from "./llhttp.ts";

export interface HeadLimits {
  /** Target, names and values together; trailers count anew. */
  readonly maxHeaderBytes: number;
  readonly maxHeaderCount: number;
}

/** Told what is found. It must not start a parser itself: act on a message after `execute` has returned. */
export interface MessageHandler {
  /** Start line and headers are complete. "no_body": none follows, whatever the headers say (an answer to HEAD). */
  onHead(parser: HttpParser): "body" | "no_body" | "refuse";
  /** A piece of the body, unframed. The buffer is the caller's and may be reused after `execute`. */
  onBody(bytes: Buffer, start: number, end: number): void;
  /** True: stop here; bytes of a next message stay unread. */
  onComplete(): boolean;
}

/** `used`: bytes consumed; fewer than given where the handler stopped at the end of a message. */
export type ParseResult =
  | { readonly ok: true; readonly used: number }
  | { readonly ok: false; readonly reason: string; readonly tooLarge: boolean };

/** The messages of one direction of one connection. `free` it when the connection closes. */
export class HttpParser implements Callbacks {
  /** Of the last message whose head was complete. Flat: name, value, name, value; as sent. */
  headers: string[] = [];
  target = "";
  method = "";
  statusCode = 0;
  /** Of HTTP/1; null: another major version. */
  minorVersion: number | null = 1;
  /** Whether the connection may carry another message: llhttp's conclusion from version, Connection and framing. */
  keepAlive = false;
  /** A message has begun and is not complete. */
  inMessage = false;

  readonly #kind: "request" | "response";
  readonly #handler: MessageHandler;
  readonly #limits: HeadLimits;
  #handle: ParserHandle | null;
  #headerBytes = 0;
  #inTrailers = false;
  #tooLarge = false;

  constructor(kind: "request" | "response", handler: MessageHandler, limits: HeadLimits) {
    this.#kind = kind;
    this.#handler = handler;
    this.#limits = limits;
    this.#handle = llhttp.allocate(kind);
  }

  /** After a result that is not `ok` the connection is of no use any more. */
  execute(bytes: Buffer, from: number, to: number): ParseResult {
    let at = from;
    while (this.#handle !== null) {
      const { code, used } = llhttp.execute(this.#handle, this, bytes, at, to);
      at += used;
      if (code === Code.ok) break;
      if (code !== Code.paused && code !== Code.pausedForUpgrade) return this.#failure(this.#handle);
      llhttp.resume(this.#handle, code);
      // An offer to upgrade is declined by going on in HTTP/1.
      if (code === Code.paused) break;
    }
    return { ok: true, used: at - from };
  }

  /** The other side closed: completes a body that ends with the connection; one cut short is not `ok`. */
  finish(): ParseResult {
    if (this.#handle === null) return { ok: true, used: 0 };
    const code = llhttp.finish(this.#handle, this);
    return code === Code.ok || code === Code.paused ? { ok: true, used: 0 } : this.#failure(this.#handle);
  }

  free(): void {
    if (this.#handle !== null) llhttp.free(this.#handle);
    this.#handle = null;
  }

  #failure(handle: ParserHandle): ParseResult {
    return { ok: false, reason: llhttp.errorReason(handle), tooLarge: this.#tooLarge };
  }

  onBegin(): number {
    this.headers = [];
    this.target = "";
    this.inMessage = true;
    this.#inTrailers = false;
    this.#headerBytes = 0;
    return Code.ok;
  }

  onTarget(piece: string): number {
    this.target += piece;
    return this.#count(piece.length);
  }

  onHeaderName(piece: string): number {
    // Trailers are dropped, yet counted: nobody may send them for ever.
    if (!this.#inTrailers) {
      const { headers } = this;
      if (headers.length % 2 === 1) headers[headers.length - 1] += piece;
      else if (headers.length < 2 * this.#limits.maxHeaderCount) headers.push(piece);
      else return this.#count(Number.POSITIVE_INFINITY);
    }
    return this.#count(piece.length);
  }

  onHeaderValue(piece: string): number {
    if (!this.#inTrailers) {
      const { headers } = this;
      if (headers.length % 2 === 1) headers.push(piece);
      else headers[headers.length - 1] += piece;
    }
    return this.#count(piece.length);
  }

  onHeadersComplete(statusCode: number, keepAlive: boolean): number {
    if (this.#handle === null) return Code.refused;
    this.statusCode = statusCode;
    this.keepAlive = keepAlive;
    this.minorVersion = llhttp.minorVersion(this.#handle);
    if (this.#kind === "request") this.method = llhttp.method(this.#handle);
    this.#inTrailers = true;
    this.#headerBytes = 0;
    const verdict = this.#handler.onHead(this);
    if (verdict === "refuse") return Code.refused;
    return verdict === "no_body" ? Code.noBody : Code.ok;
  }

  onBody(bytes: Buffer, start: number, end: number): number {
    this.#handler.onBody(bytes, start, end);
    return Code.ok;
  }

  onComplete(): number {
    this.inMessage = false;
    return this.#handler.onComplete() ? Code.paused : Code.ok;
  }

  #count(bytes: number): number {
    this.#headerBytes += bytes;
    if (this.#headerBytes <= this.#limits.maxHeaderBytes) return Code.ok;
    this.#tooLarge = true;
    return Code.refused;
  }
}
