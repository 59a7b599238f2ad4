import { createServer as createTcpServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import type { Clock } from "#src/determinism/clock.ts";
import type { Deadlines } from "#src/dispatch/deadlines.ts";
import type { Downstream } from "#src/dispatch/downstream.ts";
import type { HttpError } from "#src/errors/openAiError.ts";
import type { RouterError } from "#src/errors/routerError.ts";
import { BodyPool } from "./bodyPool.ts";
import type { HttpLimits } from "./httpLimits.ts";
import type { HttpHead, HttpRequest } from "./httpRequest.ts";
import { ServerConnection } from "./serverConnection.ts";

export interface ServerTls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

export interface HttpServerOptions {
  readonly limits: HttpLimits;
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  readonly tls?: ServerTls;
  /** Asked when a head is complete, before any of its body is read (and before `100 Continue`): the place to authenticate and to shed load. */
  readonly admit: (head: HttpHead) => RouterError | null;
  /** Takes a whole request. It must end or destroy the answer. */
  readonly handle: (request: HttpRequest, downstream: Downstream) => void;
  /** How a request that never reached `handle` is answered. Null: its head was not even read. */
  readonly render: (error: RouterError, head: HttpHead | null) => HttpError;
}

/**
 * HTTP/1 for clients. Bytes are parsed by llhttp; connections, limits and answers are kept here, because node's own
 * server spends more on a request and on each piece of a streamed answer than all the rest of the router.
 */
export class HttpServer {
  readonly #server: Server;
  readonly #pool = new BodyPool();
  readonly #connections = new Set<ServerConnection>();
  #draining = false;

  constructor(options: HttpServerOptions) {
    const { limits, tls } = options;
    const pool = this.#pool;
    const accept = (socket: Socket): void => {
      const connection = new ServerConnection(
        socket,
        options,
        pool,
        () => this.#draining,
        () => this.#connections.delete(connection),
      );
      this.#connections.add(connection);
    };
    this.#server =
      tls === undefined
        ? createTcpServer({ noDelay: true, pauseOnConnect: true }, accept)
        : createTlsServer(
            { ...tls, noDelay: true, handshakeTimeout: limits.headersMs, ALPNProtocols: ["http/1.1"] },
            accept,
          );
    this.#server.maxConnections = limits.maxConnections;
    // A client that fails to shake hands is its own affair.
    this.#server.on("tlsClientError", () => {});
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Bodies that are being received or in hand. */
  get heldBytes(): number {
    return this.#pool.heldBytes;
  }

  listen(at: { host: string; port: number }): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(at, () => {
        this.#server.off("error", reject);
        resolve(this.#server.address() as AddressInfo);
      });
    });
  }

  /** Accepts no more; idle connections close now, the others with the answer under way. Resolves when all have. */
  drain(): Promise<void> {
    this.#draining = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const connection of this.#connections) connection.drain();
    return closed;
  }

  /** Closes everything at once. */
  close(): Promise<void> {
    const closed = this.drain();
    for (const connection of this.#connections) connection.destroy();
    return closed;
  }
}
