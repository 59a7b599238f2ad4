import { randomUUID } from "node:crypto";
import type { Config } from "#src/config/schema.ts";
import type { Downstream } from "#src/dispatch/downstream.ts";
import { toHttpError, type HttpError } from "#src/errors/openAiError.ts";
import { toRouterError, type RouterError } from "#src/errors/routerError.ts";
import { errorShapeOf, sendError, sendJson } from "./answers.ts";
import { carry } from "./carriedRequest.ts";
import type { GatewayParts } from "./gatewayParts.ts";
import { ANONYMOUS, type Client, type Clients } from "./clients.ts";
import type { HttpHead, HttpRequest } from "./http/httpRequest.ts";
import { modelBody, modelListBody } from "./modelList.ts";
import type { ModelNames } from "./modelNames.ts";
import { prepare, type PreparedRequest } from "./preparedRequest.ts";
import { readTarget, refuseControlPaths, type RequestTarget } from "./requestTarget.ts";
import { keyRateLimited } from "./refusals.ts";
import { recordRefusal } from "./requestRecords.ts";
import { senderOf } from "./requestedService.ts";

/** What a reload replaces as a whole. */
export interface GatewaySettings {
  readonly clients: Clients;
  readonly names: ModelNames;
  readonly limits: Config["limits"];
  readonly logRequests: boolean;
}

/** What clients can ask: the engines' routes, the joined model list, and whether the router is well. */
export class ClientApi {
  readonly #parts: GatewayParts;
  #settings: GatewaySettings;

  constructor(parts: GatewayParts, settings: GatewaySettings) {
    this.#parts = parts;
    this.#settings = settings;
  }

  configure(settings: GatewaySettings): void {
    this.#settings = settings;
  }

  get clients(): Clients {
    return this.#settings.clients;
  }

  /** Whether a request may come in, judged by its head alone: no byte of its body has been read. */
  admit(head: HttpHead): RouterError | null {
    if (isProbe(head)) return null;
    const { clock, scheduler, metrics } = this.#parts;
    let client: Client;
    try {
      client = this.#settings.clients.sender(head);
      const waitMs = client.requests?.take(1, clock.nowMs()) ?? 0;
      if (waitMs > 0) throw keyRateLimited("requests", waitMs);
    } catch (caught) {
      const error = toRouterError(caught);
      if (error.fault === "client") metrics.authFailures.with(error.code).add();
      return error;
    }
    if (head.method !== "POST") return null;
    return scheduler.admit(head.bodyBytes ?? 0, clock.nowMs(), senderOf(head, client, scheduler.classes));
  }

  /** Never throws: whatever goes wrong becomes an answer. */
  handle(incoming: HttpRequest, downstream: Downstream): void {
    const requestId = randomUUID();
    const { head } = incoming;
    let client = ANONYMOUS;
    const release = (bodyFree: boolean): void => {
      if (bodyFree) incoming.release();
    };
    const refuse = (caught: unknown): void => {
      release(true);
      this.#refuse(toRouterError(caught), requestId, incoming, client.name, downstream);
    };
    try {
      // Anew, which costs a hash: state kept per request from its head to its body would cost the garbage collector more.
      if (!isProbe(head)) client = this.#settings.clients.sender(head);
      const target = readTarget(head.target);
      if (this.#answerLocally(requestId, head, target, client, downstream)) {
        release(true);
        return;
      }
      refuseControlPaths(target);
      const prepared = prepare(requestId, incoming, client, this.#tools());
      if (prepared instanceof Promise) {
        prepared.then((late) => this.#carry(late, incoming, client, downstream, release)).catch(refuse);
      } else this.#carry(prepared, incoming, client, downstream, release);
    } catch (caught) {
      refuse(caught);
    }
  }

  #tools() {
    const { fleet, reader, tokens, metrics, scheduler } = this.#parts;
    const { names, limits } = this.#settings;
    return { fleet, reader, tokens, metrics, names, limits, classes: scheduler.classes };
  }

  #carry(
    prepared: PreparedRequest,
    incoming: HttpRequest,
    client: Client,
    downstream: Downstream,
    release: (bodyFree: boolean) => void,
  ): void {
    const { limits, logRequests } = this.#settings;
    const work = { prepared, incoming, client, downstream, limits, logRequests };
    carry(work, this.#parts, release);
  }

  /** True if the router answers this itself. */
  #answerLocally(
    requestId: string,
    head: HttpHead,
    { decodedPath }: RequestTarget,
    client: Client,
    downstream: Downstream,
  ): boolean {
    if (head.method !== "GET" && head.method !== "HEAD") return false;
    const { fleet, readiness, startedSeconds } = this.#parts;
    const { names } = this.#settings;
    if (decodedPath === "/healthz") {
      sendJson(downstream, requestId, 200, `{"status":"ok"}`);
    } else if (decodedPath === "/readyz" || decodedPath === "/health") {
      const { ready, reasons } = readiness();
      sendJson(downstream, requestId, ready ? 200 : 503, JSON.stringify({ ready, reasons }));
    } else if (decodedPath === "/v1/models") {
      sendJson(downstream, requestId, 200, modelListBody(names.names(fleet.models(), client), startedSeconds));
    } else if (decodedPath.startsWith("/v1/models/")) {
      const id = decodedPath.slice("/v1/models/".length);
      sendJson(downstream, requestId, 200, modelBody(names.names(fleet.models(), client), id, startedSeconds));
    } else return false;
    return true;
  }

  /** The answer to what never got as far as `handle`. */
  render(error: RouterError, head: HttpHead | null): HttpError {
    const requestId = randomUUID();
    this.#record(error, requestId, head, 0, "unknown");
    return toHttpError(error, requestId, errorShapeOf(head?.target ?? ""));
  }

  #refuse(error: RouterError, requestId: string, { head, body }: HttpRequest, tenant: string, to: Downstream): void {
    sendError(to, error, requestId, errorShapeOf(head.target));
    this.#record(error, requestId, head, body.length, tenant);
  }

  #record(error: RouterError, requestId: string, head: HttpHead | null, bodyBytes: number, tenant: string): void {
    const { log, metrics, clock } = this.#parts;
    if (error.code === "internal") log.event("error", "internal error", { requestId, cause: describe(error.cause) });
    metrics.model("").request(error.httpStatus, error.code);
    if (!this.#settings.logRequests) return;
    log.request(recordRefusal(requestId, error, head, bodyBytes, tenant, clock.nowMs()));
  }
}

function isProbe({ method, target }: HttpHead): boolean {
  return (method === "GET" || method === "HEAD") && /^\/(healthz|readyz|health)$/.test(target);
}

function describe(cause: unknown): string {
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
}
