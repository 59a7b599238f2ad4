import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { EngineContext } from "../engineContext.ts";
import type { RequestFaults } from "../faults.ts";
import { Exchange } from "./exchange.ts";
import { findRoute, type RouteKind } from "./routes.ts";
import { VllmError } from "./vllmError.ts";

/** The listening socket of one emulated engine. It can be closed and opened again at the same port. */
export class EngineServer {
  readonly #context: EngineContext;
  readonly #host: string;
  #port: number;
  #server: Server | null = null;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#host = context.options.host;
    this.#port = context.options.port;
  }

  get port(): number {
    return this.#port;
  }

  get isOpen(): boolean {
    return this.#server !== null;
  }

  async open(): Promise<void> {
    if (this.#server !== null) return;
    const server = createServer({ keepAliveTimeout: this.#context.options.keepAliveMs, keepAliveTimeoutBuffer: 0 });
    server.requestTimeout = 0;
    server.on("request", (request, response) => void this.#serve(request, response));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, this.#host, resolve);
    });
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Closes the listening socket and cuts every connection. */
  async close(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = "/", query] = (request.url ?? "/").split("?");
    const method = request.method ?? "GET";
    // uvicorn sends neither Connection nor Keep-Alive.
    response.removeHeader("connection");
    response.setHeader("server", "uvicorn");
    response.setHeader("vary", "Origin");
    const { clockSkewMs } = this.#context.faults.current;
    if (clockSkewMs !== 0) response.setHeader("date", new Date(Date.now() + clockSkewMs).toUTCString());
    const body = await collectBody(request);
    if (body === null) return;
    this.#context.received.add({ method, path, headers: { ...request.headers }, body });

    const found = isLocal(request) ? findRoute(method, path) : findRoute(method, path, ["model", "control"]);
    const header = request.headers["x-request-id"];
    const requestId = typeof header === "string" && header !== "" ? header : randomBytes(8).toString("hex");
    const faults = this.#faultsFor(found.kind ?? "control");
    const message = { request, response, path, query: new URLSearchParams(query), body, requestId };
    const exchange = new Exchange(message, this.#context, faults);
    if (faults.hang !== null) {
      response.once("close", () => this.#logUnanswered(requestId, path));
      return;
    }
    this.#count(method, found.kind === null ? "none" : path, response);
    try {
      if (faults.error !== null) throw emulatedError(faults.error);
      if (found.kind === null) answerNoRoute(exchange, found.allow);
      else found.route(exchange);
    } catch (error) {
      answerError(exchange, error);
    }
  }

  #logUnanswered(requestId: string, path: string): void {
    const { log, options, incarnation } = this.#context;
    const outcome = incarnation.stopped ? "died" : "aborted";
    const tokens = { promptTokens: 0, cachedTokens: 0, outputTokens: 0 };
    log.add({ requestId, path, model: options.model, outcome, phase: "queued", ...tokens });
  }

  #faultsFor(kind: RouteKind): RequestFaults {
    const none: RequestFaults = { hang: null, error: null, dieAfterTokens: null, stallAfterTokens: null };
    if (kind === "emulator") return none;
    if (kind === "model") return this.#context.faults.nextRequest();
    const { hang, error } = this.#context.faults.current;
    return { ...none, hang: hang === "all" ? hang : null, error: error?.scope === "all" ? error : null };
  }

  #count(method: string, handler: string, response: ServerResponse): void {
    const { httpRequests } = this.#context.incarnation;
    response.once("finish", () => {
      const key = `${method} ${handler} ${Math.floor(response.statusCode / 100)}xx`;
      httpRequests.set(key, (httpRequests.get(key) ?? 0) + 1);
    });
  }
}

/** The emulator's own routes are for the machine it runs on. */
function isLocal(request: IncomingMessage): boolean {
  const address = request.socket.remoteAddress ?? "";
  return address === "::1" || /^(::ffff:)?127\./.test(address);
}

/** The whole body, or null if the client left before it was there. */
async function collectBody(request: IncomingMessage): Promise<Buffer | null> {
  const parts: Buffer[] = [];
  try {
    for await (const part of request) parts.push(part as Buffer);
  } catch {
    return null;
  }
  return Buffer.concat(parts);
}

function answerNoRoute(exchange: Exchange, allow: readonly string[]): void {
  if (allow.length === 0) {
    exchange.answerJson({ detail: "Not Found" }, 404);
    return;
  }
  exchange.response.setHeader("allow", allow.join(", "));
  exchange.answerJson({ detail: "Method Not Allowed" }, 405);
}

function emulatedError(fault: NonNullable<RequestFaults["error"]>): VllmError {
  const type = fault.status === 503 ? "ServiceUnavailableError" : "InternalServerError";
  return new VllmError(fault.status, fault.message, type, null, fault.retryAfterSeconds);
}

function answerError(exchange: Exchange, caught: unknown): void {
  const error = caught instanceof VllmError ? caught : new VllmError(500, String(caught), "InternalServerError", null);
  if (error.retryAfterSeconds !== undefined) exchange.response.setHeader("retry-after", error.retryAfterSeconds);
  const body = exchange.path.startsWith("/v1/messages") ? error.anthropicBody : error.body;
  exchange.answer(error.status, "application/json", body);
}
