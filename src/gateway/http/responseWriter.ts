import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Downstream, Framing } from "#src/dispatch/downstream.ts";

/** What the request decides about its answer. */
export interface AnswerTerms {
  readonly minorVersion: number;
  readonly head: boolean;
  /** The client would send another request over this connection. */
  readonly keepAlive: boolean;
}

interface Piece {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

const LAST_CHUNK = "0\r\n\r\n";
/** What no header value may hold. From an engine llhttp lets none of it pass; a replica's configured name may have it. */
const UNSAFE = /[^\t\u0020-\u007e\u0080-\u00ff]/gu;

/**
 * One answer to a client. Head, frames and the body bytes of one read leave as one buffer and one write: a small answer
 * costs one system call, an event of a stream one.
 */
export class ResponseWriter implements Downstream {
  started = false;
  readonly #socket: Socket;
  readonly #terms: AnswerTerms;
  readonly #draining: () => boolean;
  readonly #finished: (reusable: boolean) => void;
  #open = true;
  #close = false;
  #framing: Framing = "none";
  /** Bytes that a body of known length still lacks. */
  #left = 0;
  #head = "";
  readonly #pieces: Piece[] = [];
  #pieceBytes = 0;
  #drained: (() => void) | null = null;
  #gone: (() => void) | null = null;

  constructor(socket: Socket, terms: AnswerTerms, draining: () => boolean, finished: (reusable: boolean) => void) {
    this.#socket = socket;
    this.#terms = terms;
    this.#draining = draining;
    this.#finished = finished;
  }

  get open(): boolean {
    return this.#open;
  }

  start(status: number, headers: readonly string[], framing: Framing): void {
    if (!this.#open || this.started) return;
    const { minorVersion, head, keepAlive } = this.#terms;
    // HTTP/1.0 knows no chunks: the body ends with the connection.
    const unframed = framing === "chunked" && minorVersion === 0;
    this.#close = !keepAlive || unframed || this.#draining();
    this.#framing = head || unframed ? "none" : framing;
    let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Unknown"}\r\n`;
    let dated = false;
    for (let i = 0; i + 1 < headers.length; i += 2) {
      const name = headers[i] ?? "";
      const value = (headers[i + 1] ?? "").replace(UNSAFE, "?");
      if (name.length === 4 && name.toLowerCase() === "date") dated = true;
      else if (name.length === 14 && name.toLowerCase() === "content-length") this.#left = Number(value);
      text += `${name}: ${value}\r\n`;
    }
    if (!dated) text += `Date: ${httpDate()}\r\n`;
    if (framing === "chunked" && !unframed) text += "Transfer-Encoding: chunked\r\n";
    if (this.#close) text += "Connection: close\r\n";
    else if (minorVersion === 0) text += "Connection: keep-alive\r\n";
    this.#head = `${text}\r\n`;
    this.started = true;
  }

  write(bytes: Buffer, start = 0, end = bytes.length): void {
    if (!this.#open || start === end || this.#terms.head) return;
    this.#pieces.push({ bytes, start, end });
    this.#pieceBytes += end - start;
  }

  flush(): boolean {
    if (!this.#open) return true;
    return this.#send("");
  }

  end(): void {
    if (!this.#open) return;
    this.#send(this.#framing === "chunked" ? LAST_CHUNK : "");
    this.#open = false;
    // A body shorter or longer than announced has spoilt the connection.
    this.#finished(!this.#close && !(this.#framing === "length" && this.#left !== 0));
  }

  destroy(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#pieces.length = 0;
    this.#socket.destroy();
  }

  onDrain(listener: () => void): void {
    this.#drained = listener;
  }

  onGone(listener: () => void): void {
    this.#gone = listener;
  }

  /** The connection: what was sent has been taken. */
  drained(): void {
    if (this.#open) this.#drained?.();
  }

  /** The connection: the client has left. */
  gone(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#pieces.length = 0;
    this.#gone?.();
  }

  /** `last`: what ends the body. Returns false when the client does not keep up. */
  #send(last: string): boolean {
    const size = this.#pieceBytes;
    const framed = this.#framing === "chunked" && size > 0;
    const length = this.#head.length + (framed ? hexDigits(size) + 2 * CRLF_BYTES : 0) + size + last.length;
    if (length === 0) return !this.#socket.writableNeedDrain;
    const bytes = Buffer.allocUnsafe(length);
    let at = this.#head.length === 0 ? 0 : bytes.write(this.#head, 0, "latin1");
    if (framed) at = writeCrlf(bytes, writeHex(bytes, at, size));
    for (const { bytes: piece, start, end } of this.#pieces) at += piece.copy(bytes, at, start, end);
    if (framed) at = writeCrlf(bytes, at);
    if (last.length > 0) bytes.write(last, at, "latin1");
    if (this.#framing === "length") this.#left -= size;
    this.#head = "";
    this.#pieces.length = 0;
    this.#pieceBytes = 0;
    return this.#socket.write(bytes);
  }
}

const CRLF_BYTES = 2;
const HEX = Buffer.from("0123456789abcdef");

function hexDigits(value: number): number {
  return Math.ceil((32 - Math.clz32(value)) / 4);
}

/** Returns the position after it. By hand: for a few bytes, `Buffer.write` costs more than the rest of the frame. */
function writeHex(bytes: Buffer, at: number, value: number): number {
  const end = at + hexDigits(value);
  for (let i = end - 1, rest = value; i >= at; i--, rest >>>= 4) bytes[i] = HEX[rest & 15] ?? 0;
  return end;
}

function writeCrlf(bytes: Buffer, at: number): number {
  bytes[at] = 13;
  bytes[at + 1] = 10;
  return at + CRLF_BYTES;
}

let dateText = "";
let dateSecond = 0;

/** IMF-fixdate of now; made once a second. */
function httpDate(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateText = new Date(second * 1000).toUTCString();
  }
  return dateText;
}
