import { redacted } from "#src/config/redacted.ts";
import type { Config } from "#src/config/schema.ts";
import type { AdminSource } from "#src/discovery/adminSource.ts";
import { RouterError } from "#src/errors/routerError.ts";
import { methodNotAllowed, unsupportedMediaType } from "#src/errors/shared.ts";
import type { Decision } from "#src/routing/decision.ts";
import { explain, type ExplainedDecision } from "#src/routing/explain.ts";
import type { DecisionLog } from "#src/telemetry/decisionLog.ts";
import type { GatewayParts } from "../gatewayParts.ts";
import { badRequest, json, notFound, type AdminAnswer, type AdminRequest } from "./adminRequest.ts";
import { staticFile } from "./staticFiles.ts";
import { replicaReports, statusReport } from "./statusReport.ts";

export interface AdminParts extends Pick<
  GatewayParts,
  "fleet" | "scheduler" | "metrics" | "clock" | "readiness" | "startedSeconds" | "log"
> {
  readonly decisions: DecisionLog<Decision>;
  /** A reload may replace it. */
  readonly source: () => AdminSource;
  readonly config: () => Config;
  readonly version: string;
}

const MAX_LISTED = 1_000;
const STATUS_DECISIONS = 20;

/** What an operator can ask and order. Throws RouterError. */
export class AdminApi {
  readonly #parts: AdminParts;

  constructor(parts: AdminParts) {
    this.#parts = parts;
  }

  async answer(request: AdminRequest): Promise<AdminAnswer> {
    const [room = "", id, verb, ...more] = request.segments;
    if (more.length > 0) throw notFound("There is no such admin route.");
    if (room === "replicas") return this.#replicas(request, id, verb);
    if (request.method !== "GET" && request.method !== "HEAD") throw notAllowed(request.method, "GET");
    if (verb !== undefined) throw notFound("There is no such admin route.");
    if (room === "decisions") return id === undefined ? this.#recent(request) : this.#decision(id);
    if (room === "requests" && id !== undefined) return this.#ofRequest(id);
    if (room === "queue" && id === undefined) return this.#queue(request);
    if (id !== undefined) throw notFound("There is no such admin route.");
    return this.#overview(room);
  }

  async #overview(room: string): Promise<AdminAnswer> {
    const { metrics, readiness, config } = this.#parts;
    switch (room) {
      case "metrics":
        return { status: 200, contentType: metrics.contentType, body: await metrics.render() };
      case "healthz":
        return json({ status: "ok" });
      case "readyz": {
        const state = readiness();
        return json(state, state.ready ? 200 : 503);
      }
      case "status":
        return json(this.#status());
      case "config":
        return json(redacted(config()));
      default: {
        const file = await staticFile(room);
        if (file === null) throw notFound("There is no such admin route.");
        return file;
      }
    }
  }

  #status(): Record<string, unknown> {
    const { fleet, scheduler, metrics, decisions, readiness, config, version, startedSeconds, clock } = this.#parts;
    return statusReport({
      fleet,
      scheduler,
      decisions: decisions.recent(STATUS_DECISIONS),
      readiness: readiness(),
      totals: metrics.totals(),
      policy: config().policy.name,
      version,
      upSeconds: Date.now() / 1000 - startedSeconds,
      nowMs: clock.nowMs(),
    });
  }

  #recent({ query }: AdminRequest): AdminAnswer {
    const decisions = this.#parts.decisions.recent(limitOf(query));
    return json({ decisions: decisions.map((one) => this.#explained(one)) });
  }

  #queue({ query }: AdminRequest): AdminAnswer {
    const { scheduler, clock } = this.#parts;
    const nowMs = clock.nowMs();
    const waiting = scheduler.queue(nowMs).slice(0, limitOf(query));
    return json({ ...scheduler.depth, byClass: scheduler.waiting(nowMs), waiting });
  }

  #decision(id: string): AdminAnswer {
    const decision = this.#parts.decisions.byDecision(id);
    if (decision === null) throw notFound(`There is no decision ${id}, or it is too long ago.`);
    return json(this.#explained(decision));
  }

  #explained(decision: Decision): ExplainedDecision {
    return explain(decision, Date.now() - this.#parts.clock.nowMs());
  }

  #ofRequest(requestId: string): AdminAnswer {
    const { decisions, scheduler, clock } = this.#parts;
    const found = decisions.byRequest(requestId);
    const waiting = scheduler.queue(clock.nowMs()).find((one) => one.requestId === requestId) ?? null;
    if (found.length === 0 && waiting === null)
      throw notFound(`Request ${requestId} does not wait, and there is no decision for it, or it is too long ago.`);
    return json({ requestId, waiting, decisions: found.map((one) => this.#explained(one)) });
  }

  #replicas(
    { method, contentType, body }: AdminRequest,
    id: string | undefined,
    verb: string | undefined,
  ): AdminAnswer {
    const { fleet, clock, log } = this.#parts;
    if (id === undefined) {
      if (method === "GET") return json({ replicas: replicaReports(fleet, clock.nowMs()) });
      if (method !== "POST") throw notAllowed(method, "GET, POST");
      const { apiKey: _apiKey, ...added } = this.#parts.source().add(
        jsonBody(contentType, body),
        fleet.replicas().map(({ endpoint }) => endpoint),
      );
      log.event("info", "engine added by the admin API", { engine: added.name, url: added.url });
      return json(added, 201);
    }
    if (method === "DELETE" && verb === undefined) return this.#remove(id);
    if (method === "GET" && verb === undefined) {
      const found = replicaReports(fleet, clock.nowMs()).find(({ replica }) => replica === id);
      if (found === undefined) throw notFound(`There is no replica ${id}.`);
      return json(found);
    }
    if (method !== "POST") throw notAllowed(method, verb === undefined ? "GET, DELETE" : "POST");
    if (verb !== "drain" && verb !== "resume") throw notFound("A replica can be asked to drain or to resume.");
    if (fleet.byId(id) === null) throw notFound(`There is no replica ${id}.`);
    if (verb === "drain") fleet.drain(id, clock.nowMs());
    else fleet.resume(id, clock.nowMs());
    return json({ replica: id, state: fleet.byId(id)?.lifecycle.state });
  }

  #remove(id: string): AdminAnswer {
    const { fleet, log } = this.#parts;
    if (this.#parts.source().remove(id)) {
      log.event("info", "engine removed by the admin API", { engine: id });
      return json({ removed: id });
    }
    if (fleet.byId(id) === null && fleet.ofEndpoint(id).length === 0) throw notFound(`There is no replica ${id}.`);
    throw badRequest(`${id} comes from the configuration, a file or DNS: remove it there, or drain it.`);
  }
}

function limitOf(query: URLSearchParams): number {
  const asked = query.get("limit") ?? "50";
  const limit = Number(asked);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LISTED) return limit;
  throw badRequest(`limit: ${JSON.stringify(asked)} is not allowed; allowed: 1..${MAX_LISTED}`, "limit");
}

/** JSON only: a type that a browser sends to another site without asking it first must not do anything here. */
function jsonBody(contentType: string, body: Buffer): unknown {
  if (!/^application\/json\b/i.test(contentType)) {
    throw unsupportedMediaType("Send the header content-type: application/json.");
  }
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (cause) {
    throw new RouterError("invalid_json", "The body is not JSON.", {
      fault: "client",
      httpStatus: 400,
      retryable: false,
      cause,
    });
  }
}

function notAllowed(method: string, allowed: string): RouterError {
  return methodNotAllowed(`${method} is not allowed here, only ${allowed}.`);
}
