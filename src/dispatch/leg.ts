import type { Clock } from "#src/determinism/clock.ts";
import type { RouterError } from "#src/errors/routerError.ts";
import { clientClosed } from "#src/errors/shared.ts";
import type { AttemptOutcome, Usage } from "#src/scheduler/outcome.ts";
import { BodyTail } from "./bodyTail.ts";
import type { Downstream, Framing } from "./downstream.ts";
import type { EngineConnection, Loss, ResponseHandler } from "./engineConnection.ts";
import { answeredStatus, engineBusy, firstTokenTimeout, idleTimeout, kvExpired, totalTimeout } from "./failures.ts";
import { endToEnd, headerValue } from "./headers.ts";
import type { HttpParser } from "./httpParser.ts";
import type { LegLimits } from "./legLimits.ts";
import type { Acquisition, ConnectionReceiver, OriginPool } from "./originPool.ts";
import { retryAfterMs } from "./retryAfter.ts";
import { StreamObserver } from "./streamObserver.ts";
import { NO_USAGE, readUsage } from "./usage.ts";
import { UsageStripper } from "./usageStripper.ts";

export interface LegOptions {
  readonly clock: Clock;
  readonly pool: OriginPool;
  readonly method: string;
  /** Request line and headers, complete. */
  readonly head: string;
  readonly body: readonly Buffer[];
  readonly limits: LegLimits;
  /** When the total limit passes; Infinity: never. */
  readonly totalDeadlineMs: number;
  readonly downstream: Downstream;
  /** Headers that the router adds to the answer; the engine's own of the same name give way. */
  readonly answerHeaders: (status: number) => readonly string[];
  /** The usage chunk of the stream was asked for by the router, not by the client. */
  readonly stripUsage: boolean;
  readonly listener: LegListener;
  /** Later than this it is not sent any more: what it counts on is gone by then. */
  readonly sendBeforeMs?: number;
  /** An answer that only says that the engine failed ends the leg, and is not the client's. */
  readonly refusesErrors?: boolean;
}

export interface LegListener {
  onFirstToken(nowMs: number): void;
  /** `events` more came with one read, `gapMs` after the last (NaN for the first ones). */
  onEvents(events: number, gapMs: number, nowMs: number): void;
  /** Exactly once, unless the leg was aborted. */
  onLegEnd(end: LegEnd): void;
}

/**
 * How a leg ended. A `failed` one has closed its connection, by which engines notice that they may stop. `leg`: of a
 * pair, what this is about; absent: the one that answers the client.
 */
export type LegEnd = Pick<AttemptOutcome, "leg"> &
  (
    | { readonly kind: "answered"; readonly status: number; readonly usage: Usage; readonly sent: boolean }
    | {
        readonly kind: "busy";
        readonly status: number;
        readonly error: RouterError;
        readonly retryAfterMs: number | null;
      }
    | { readonly kind: "failed"; readonly error: RouterError }
    | { readonly kind: "client_gone"; readonly error: RouterError }
  );

interface AnswerHead {
  readonly headers: readonly string[];
  readonly framing: Framing;
}

type Phase = "connecting" | "sent" | "streaming" | "paused" | "ended";

/** An idle connection that was closed as the request left is found out within a round trip; a far one's upload counts in. */
const STALE_WITHIN_MS = 2000;
/** Status codes by which an engine, or a proxy before it, says that this replica cannot serve just now. */
const BUSY: ReadonlySet<number> = new Set([429, 503]);
const UNSERVED: ReadonlySet<number> = new Set([502, 504]);
const FAILED = 500;
const NOT_IMPLEMENTED = 501;
const NO_BODY_STATUS: ReadonlySet<number> = new Set([204, 304]);

/** One HTTP exchange with an engine, whose answer goes to the client as it comes. */
export class Leg implements ResponseHandler, ConnectionReceiver {
  /** When the request was written; NaN before. */
  sentMs = Number.NaN;
  firstByteMs = Number.NaN;
  lastByteMs = Number.NaN;
  status = 0;
  /** Set for a stream of events. */
  stream: StreamObserver | null = null;

  readonly #options: LegOptions;
  #phase: Phase = "connecting";
  #acquisition: Acquisition | null = null;
  #connection: EngineConnection | null = null;
  #triedFresh = false;
  #stripper: UsageStripper | null = null;
  #tail: BodyTail | null = null;
  #drainAwaited = false;
  /**
   * Engines send the head of a stream before they compute the prompt, and a client can do nothing with it alone. Held back
   * until a byte of the body is there, it leaves a failure until then a status of its own, or another attempt.
   */
  #held: AnswerHead | null = null;
  #retryAfterMs: number | null = null;

  constructor(options: LegOptions) {
    this.#options = options;
  }

  start(): void {
    this.#acquire(false);
  }

  /** Closes the connection, which makes the engine stop. The listener hears nothing more. */
  abort(): void {
    if (this.#phase === "ended") return;
    this.#phase = "ended";
    this.#acquisition?.cancel();
    this.#connection?.abort();
    this.#connection = null;
  }

  /** Aborts and reports. */
  fail(error: RouterError): void {
    if (this.#phase === "ended") return;
    this.abort();
    this.#options.listener.onLegEnd({ kind: "failed", error });
  }

  #acquire(fresh: boolean): void {
    const { pool, limits } = this.#options;
    this.#acquisition = pool.acquire(this, limits.connectMs, fresh);
  }

  // ConnectionReceiver

  onConnection(connection: EngineConnection): void {
    const { clock, head, body, limits, sendBeforeMs = Number.POSITIVE_INFINITY } = this.#options;
    this.#acquisition = null;
    this.#connection = connection;
    this.#phase = "sent";
    this.sentMs = clock.nowMs();
    if (this.sentMs >= sendBeforeMs) {
      this.sentMs = Number.NaN;
      this.fail(kvExpired());
      return;
    }
    this.#limit(this.sentMs, limits.firstTokenMs);
    connection.send(head, body, this);
  }

  onUnavailable(error: RouterError): void {
    this.#acquisition = null;
    this.fail(error);
  }

  // ResponseHandler

  onHead(head: HttpParser): "body" | "no_body" {
    const { clock, limits, method, answerHeaders, stripUsage } = this.#options;
    const status = head.statusCode;
    this.status = status;
    this.firstByteMs = clock.nowMs();
    const noBody = method === "HEAD" || NO_BODY_STATUS.has(status);
    // Reported once this read is over: within a parser's callback its connection cannot be closed.
    if (BUSY.has(status) || UNSERVED.has(status) || this.#refuses(status)) {
      this.#retryAfterMs = retryAfterMs(head.headers, Date.now());
      return noBody ? "no_body" : "body";
    }

    const streamed = status === 200 && /^text\/event-stream\b/iu.test(headerValue(head.headers, "content-type") ?? "");
    if (streamed) {
      this.stream = new StreamObserver();
      if (stripUsage) this.#stripper = new UsageStripper();
    } else {
      this.#limit(this.firstByteMs, limits.idleMs);
    }
    const sized = headerValue(head.headers, "content-length") !== null && this.#stripper === null;
    const framing: Framing = noBody ? "none" : sized ? "length" : "chunked";
    const added = answerHeaders(status);
    const headers = endToEnd(head.headers, replaced(added, framing));
    for (const part of added) headers.push(part);
    this.#held = { headers, framing };
    this.#phase = "streaming";
    return noBody ? "no_body" : "body";
  }

  onBody(bytes: Buffer, start: number, end: number): void {
    // A paused connection may deliver yet: TLS has decrypted more than it has handed over.
    if (this.#phase !== "streaming" && this.#phase !== "paused") return;
    const { downstream, clock } = this.#options;
    const nowMs = clock.nowMs();
    if (this.#held !== null && this.stream !== null && this.#refuses(FAILED) && beginsWithError(bytes, start, end)) {
      // As if the status had told; what else it sends is of no interest.
      this.#held = null;
      this.stream = null;
      this.status = FAILED;
      this.#phase = "sent";
      return;
    }
    if (this.stream === null) (this.#tail ??= new BodyTail()).append(bytes, start, end);
    else this.#observe(this.stream, bytes, start, end, nowMs);
    this.lastByteMs = nowMs;
    this.#start();
    if (this.#stripper === null) downstream.write(bytes, start, end);
    else this.#stripper.push(bytes, start, end, this.#emit);
  }

  onReadDone(): boolean {
    if (this.#phase === "sent") {
      // Status and headers of a refusal; its body is of no interest to anybody.
      if (this.status !== 0) this.#refused();
      return true;
    }
    // The limit that the head was given goes on.
    if (this.#held !== null) return true;
    const { downstream, limits } = this.#options;
    if (this.#phase === "paused") downstream.flush();
    if (this.#phase !== "streaming") return false;
    const waiting = this.stream !== null && Number.isNaN(this.stream.firstTokenMs);
    if (!waiting) this.#limit(this.lastByteMs, limits.idleMs);
    if (downstream.flush()) return true;
    this.#pause();
    return false;
  }

  onEnd(sent: boolean): void {
    this.#connection = null;
    if (this.#phase === "sent") {
      this.#refused();
      return;
    }
    if (this.#phase !== "ended") this.#answered(sent);
  }

  onLost(loss: Loss): void {
    const { clock } = this.#options;
    this.#connection = null;
    // Later than this it was no race with an engine that closes what is idle.
    const soon = clock.nowMs() - this.sentMs < STALE_WITHIN_MS;
    if (loss.stale && soon && !this.#triedFresh && this.#phase === "sent") {
      this.#triedFresh = true;
      this.#phase = "connecting";
      this.#acquire(true);
      return;
    }
    this.#broke(loss.error);
  }

  onDeadline(nowMs: number): void {
    const { limits, totalDeadlineMs, downstream, listener } = this.#options;
    if (nowMs >= totalDeadlineMs) this.fail(totalTimeout());
    else if (this.#phase === "paused") {
      // It is the client that stalls. It must not keep an engine's slot by reading nothing.
      this.abort();
      downstream.destroy();
      listener.onLegEnd({ kind: "client_gone", error: clientClosed() });
    } else if (this.#phase === "sent" || (this.stream !== null && Number.isNaN(this.stream.firstTokenMs))) {
      this.fail(firstTokenTimeout(limits.firstTokenMs ?? 0));
    } else this.#broke(idleTimeout(limits.idleMs ?? 0));
  }

  /** The engine will send no more. A stream that had said that it is complete lacks nothing but the end of its framing. */
  #broke(error: RouterError): void {
    if (this.#phase === "ended" || this.stream?.done !== true) {
      this.fail(error);
      return;
    }
    this.#connection?.abort();
    this.#answered(false);
  }

  #answered(sent: boolean): void {
    const { downstream, listener } = this.#options;
    this.#connection = null;
    this.#phase = "ended";
    this.#start();
    this.#stripper?.finish(this.#emit);
    downstream.end();
    const usage = this.stream?.usage() ?? (this.#tail === null ? NO_USAGE : readUsage(this.#tail.text()));
    listener.onLegEnd({ kind: "answered", status: this.status, usage, sent });
  }

  /** Tells the client the head, once. */
  #start(): void {
    if (this.#held === null) return;
    this.#options.downstream.start(this.status, this.#held.headers, this.#held.framing);
    this.#held = null;
  }

  #limit(fromMs: number, limitMs: number | null): void {
    const { totalDeadlineMs } = this.#options;
    if (this.#connection === null) return;
    this.#connection.deadlineMs = limitMs === null ? totalDeadlineMs : Math.min(totalDeadlineMs, fromMs + limitMs);
  }

  #emit = (bytes: Buffer, start: number, end: number): void => this.#options.downstream.write(bytes, start, end);

  #observe(stream: StreamObserver, bytes: Buffer, start: number, end: number, nowMs: number): void {
    const { listener } = this.#options;
    const waiting = Number.isNaN(stream.firstTokenMs);
    const events = stream.observe(bytes, start, end, nowMs);
    if (events === 0) return;
    if (waiting && !Number.isNaN(stream.firstTokenMs)) listener.onFirstToken(nowMs);
    listener.onEvents(events, waiting ? Number.NaN : nowMs - this.lastByteMs, nowMs);
  }

  #pause(): void {
    const { downstream, limits, clock } = this.#options;
    this.#phase = "paused";
    this.#limit(clock.nowMs(), limits.idleMs);
    if (this.#drainAwaited) return;
    this.#drainAwaited = true;
    downstream.onDrain(() => {
      if (this.#phase !== "paused") return;
      this.#phase = "streaming";
      this.#limit(clock.nowMs(), limits.idleMs);
      this.#connection?.resume();
    });
  }

  #refuses(status: number): boolean {
    return this.#options.refusesErrors === true && status >= FAILED && status !== NOT_IMPLEMENTED;
  }

  #refused(): void {
    const { listener } = this.#options;
    const { status } = this;
    const after = this.#retryAfterMs;
    this.abort();
    if (BUSY.has(status))
      listener.onLegEnd({ kind: "busy", status, error: engineBusy(status, after), retryAfterMs: after });
    else listener.onLegEnd({ kind: "failed", error: answeredStatus(status) });
  }
}

/** Engines that have begun a stream say in its first event that they cannot. */
const ERROR_EVENT = /^(?:event: ?error\r?\n)?data: ?\{\s*"error"\s*:/u;
const ERROR_EVENT_CHARS = 64;

function beginsWithError(bytes: Buffer, start: number, end: number): boolean {
  return ERROR_EVENT.test(bytes.toString("latin1", start, Math.min(end, start + ERROR_EVENT_CHARS)));
}

const NONE: ReadonlySet<string> = new Set();
const LENGTH: ReadonlySet<string> = new Set(["content-length"]);

/** Names of the engine's headers that give way: to the router's own, and to a framing without a length. */
function replaced(added: readonly string[], framing: Framing): ReadonlySet<string> {
  const base = framing === "chunked" ? LENGTH : NONE;
  if (added.length === 0) return base;
  const names = new Set(base);
  for (let i = 0; i < added.length; i += 2) names.add((added[i] ?? "").toLowerCase());
  return names;
}
