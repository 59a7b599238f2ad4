import type { Deadline } from "./deadlines.ts";
import { EngineConnection } from "./engineConnection.ts";
import type { ConnectionOwner } from "./engineConnection.ts";
import { connectTimeout, tooManyWaiting, unreachable } from "./failures.ts";
import type { Origin } from "./origin.ts";
import type { UpstreamOptions } from "./upstreamOptions.ts";
import type { RouterError } from "#src/errors/routerError.ts";
import { shuttingDown } from "#src/errors/shared.ts";

/** Gets a connection or hears why not; exactly one of the two, possibly before `acquire` returns. */
export interface ConnectionReceiver {
  onConnection(connection: EngineConnection): void;
  onUnavailable(error: RouterError): void;
}

/**
 * A connection idle for longer than this is handed out one turn of the event loop later: if the engine's FIN has
 * arrived in the meantime it is seen before a request is written into a closed connection.
 */
const CHECK_AFTER_IDLE_MS = 20;
/** An engine that closes connections idle for less is going, not tidying up: keep-alive times are seconds. */
const LEAST_KEEP_ALIVE_MS = 500;
/** Of the engine's own time; the rest is left for the way and for a busy loop. */
const KEEP_ALIVE_SHARE = 0.8;

/** Keep-alive connections to one engine: bounded, the most recently used first, the rest left to grow old. */
export class OriginPool implements ConnectionOwner {
  readonly origin: Origin;
  readonly #options: UpstreamOptions;
  readonly #onEmpty: () => void;
  readonly #idle: EngineConnection[] = [];
  readonly #connecting = new Map<EngineConnection, Acquisition>();
  readonly #waiting = new Set<Acquisition>();
  readonly #all = new Set<EngineConnection>();
  /** Less than configured where the engine was seen to close sooner. */
  #idleMs: number;

  constructor(origin: Origin, options: UpstreamOptions, onEmpty: () => void) {
    this.origin = origin;
    this.#options = options;
    this.#onEmpty = onEmpty;
    this.#idleMs = options.idleMs;
  }

  get connections(): number {
    return this.#all.size;
  }

  /** Connections at hand. */
  get idle(): number {
    return this.#idle.length;
  }

  /** `fresh`: a new connection even where an idle one is at hand. */
  acquire(receiver: ConnectionReceiver, connectMs: number | null, fresh = false): Acquisition | null {
    const { clock } = this.#options;
    const idle = fresh ? undefined : this.#takeIdle();
    if (idle !== undefined && clock.nowMs() - idle.idleSinceMs < CHECK_AFTER_IDLE_MS) {
      idle.deadlineMs = Number.POSITIVE_INFINITY;
      receiver.onConnection(idle);
      return null;
    }
    const acquisition = new Acquisition(this, receiver, connectMs, clock.nowMs());
    if (idle !== undefined) this.#check(idle, acquisition);
    else this.#open(acquisition);
    return acquisition;
  }

  /** @internal Called by an acquisition that is given up or has waited too long. */
  forget(acquisition: Acquisition): void {
    this.#waiting.delete(acquisition);
    this.#options.deadlines.unwatch(acquisition);
    for (const [connection, waiter] of this.#connecting) {
      if (waiter !== acquisition) continue;
      this.#connecting.delete(connection);
      connection.abort();
    }
  }

  close(): void {
    for (const acquisition of [...this.#waiting, ...this.#connecting.values()]) acquisition.fail(shuttingDown());
    for (const connection of this.#all) connection.abort();
  }

  #takeIdle(): EngineConnection | undefined {
    let idle = this.#idle.pop();
    // One whose end was seen reports its closing a turn later.
    while (idle !== undefined && !idle.usable) idle = this.#idle.pop();
    return idle;
  }

  #check(connection: EngineConnection, acquisition: Acquisition): void {
    setImmediate(() => {
      if (acquisition.settled) this.#keep(connection);
      else if (connection.usable) this.#give(connection, acquisition);
      else this.#open(acquisition);
    });
  }

  #open(acquisition: Acquisition): void {
    const { deadlines, maxConnections, maxWaiting, headLimits, tls } = this.#options;
    if (this.#all.size >= maxConnections) {
      if (this.#waiting.size >= maxWaiting) {
        acquisition.fail(tooManyWaiting());
        return;
      }
      this.#waiting.add(acquisition);
    } else {
      const connection = new EngineConnection(this.origin, this, headLimits, tls);
      this.#all.add(connection);
      this.#connecting.set(connection, acquisition);
      deadlines.watch(connection);
    }
    deadlines.watch(acquisition);
  }

  #give(connection: EngineConnection, acquisition: Acquisition): void {
    this.#waiting.delete(acquisition);
    this.#options.deadlines.unwatch(acquisition);
    connection.deadlineMs = Number.POSITIVE_INFINITY;
    acquisition.succeed(connection);
  }

  #keep(connection: EngineConnection): void {
    if (!connection.usable) return;
    const [next] = this.#waiting;
    if (next === undefined) this.#idle.push(connection);
    else this.#give(connection, next);
  }

  // ConnectionOwner

  onConnected(connection: EngineConnection): void {
    const acquisition = this.#connecting.get(connection);
    if (acquisition === undefined) return;
    this.#connecting.delete(connection);
    this.#give(connection, acquisition);
  }

  onIdle(connection: EngineConnection, keepAliveSeconds: number | null): void {
    const announcedMs = keepAliveSeconds === null ? Number.POSITIVE_INFINITY : keepAliveSeconds * 1000;
    const limitMs = Math.min(this.#idleMs, KEEP_ALIVE_SHARE * announcedMs);
    connection.idleSinceMs = this.#options.clock.nowMs();
    connection.deadlineMs = connection.idleSinceMs + limitMs;
    this.#keep(connection);
  }

  onIdleTooLong(connection: EngineConnection): void {
    connection.abort();
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  onClosed(connection: EngineConnection, cause: Error | null): void {
    this.#all.delete(connection);
    this.#options.deadlines.unwatch(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) {
      this.#idle.splice(at, 1);
      this.#learnKeepAlive(this.#options.clock.nowMs() - connection.idleSinceMs);
    }
    const acquisition = this.#connecting.get(connection);
    this.#connecting.delete(connection);
    acquisition?.fail(unreachable(cause ?? new Error("closed while connecting")));
    const [next] = this.#waiting;
    if (next !== undefined) {
      this.#waiting.delete(next);
      this.#open(next);
    }
    if (this.#all.size === 0) this.#onEmpty();
  }

  /** The engine closed a connection that was idle for so long: the others of this pool shall be closed before. */
  #learnKeepAlive(idleMs: number): void {
    if (idleMs >= LEAST_KEEP_ALIVE_MS) this.#idleMs = Math.min(this.#idleMs, KEEP_ALIVE_SHARE * idleMs);
  }
}

/** Somebody's wait for a connection. */
export class Acquisition implements Deadline {
  deadlineMs: number;
  settled = false;
  readonly #pool: OriginPool;
  readonly #receiver: ConnectionReceiver;
  readonly #connectMs: number | null;

  constructor(pool: OriginPool, receiver: ConnectionReceiver, connectMs: number | null, nowMs: number) {
    this.#pool = pool;
    this.#receiver = receiver;
    this.#connectMs = connectMs;
    this.deadlineMs = connectMs === null ? Number.POSITIVE_INFINITY : nowMs + connectMs;
  }

  cancel(): void {
    if (this.settled) return;
    this.settled = true;
    this.#pool.forget(this);
  }

  onDeadline(): void {
    this.fail(connectTimeout(this.#connectMs ?? 0));
  }

  /** @internal */
  succeed(connection: EngineConnection): void {
    this.settled = true;
    this.#receiver.onConnection(connection);
  }

  /** @internal */
  fail(error: RouterError): void {
    if (this.settled) return;
    this.cancel();
    this.#receiver.onUnavailable(error);
  }
}
