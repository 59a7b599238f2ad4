import { randomUUID } from "node:crypto";
import type { Config } from "#src/config/schema.ts";
import type { Clock } from "#src/determinism/clock.ts";
import type { Deadlines } from "#src/dispatch/deadlines.ts";
import type { Downstream } from "#src/dispatch/downstream.ts";
import { toHttpError } from "#src/errors/openAiError.ts";
import { toRouterError } from "#src/errors/routerError.ts";
import { sendAnswer, sendError } from "../answers.ts";
import { HTTP_LIMITS } from "../http/httpLimits.ts";
import type { HttpRequest } from "../http/httpRequest.ts";
import { HttpServer, type ServerTls } from "../http/httpServer.ts";
import { adminAccess } from "./adminAccess.ts";
import type { AdminApi } from "./adminApi.ts";
import { readAdminTarget } from "./adminRequest.ts";

export interface AdminServerOptions {
  readonly api: AdminApi;
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  readonly config: () => Config;
  readonly tls: ServerTls | undefined;
}

/** The page is the router's own: nothing else may frame it, and it loads nothing from elsewhere. */
const PAGE_HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
};

/** The admin listener: apart from the clients', with authentication of its own. */
export function createAdminServer({ api, clock, deadlines, config, tls }: AdminServerOptions): HttpServer {
  return new HttpServer({
    limits: { ...HTTP_LIMITS, maxBodyBytes: 1_048_576, maxConnections: 1024, requestMs: 30_000 },
    clock,
    deadlines,
    ...(tls === undefined ? {} : { tls }),
    admit: (head) => adminAccess(head, config().admin.token),
    handle: (request, downstream) => void answer(api, request, downstream),
    render: (error) => toHttpError(error, randomUUID()),
  });
}

async function answer(api: AdminApi, { head, body }: HttpRequest, downstream: Downstream): Promise<void> {
  try {
    const contentType = head.header("content-type") ?? "";
    const request = { method: head.method, ...readAdminTarget(head.target), contentType, body };
    const { status, contentType: type, body: content } = await api.answer(request);
    sendAnswer(downstream, status, { "content-type": type, ...PAGE_HEADERS }, content);
  } catch (caught) {
    sendError(downstream, toRouterError(caught), randomUUID(), "openai");
  }
}
