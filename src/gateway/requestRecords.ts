import type { Attempt, CallResult } from "#src/dispatch/call.ts";
import type { RouterError } from "#src/errors/routerError.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { Usage } from "#src/scheduler/outcome.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import type { RequestRecord } from "#src/telemetry/requestRecord.ts";
import type { HttpHead, HttpRequest } from "./http/httpRequest.ts";

/** A request that never got as far as the scheduler. */
export function recordRefusal(
  requestId: string,
  error: RouterError,
  head: HttpHead | null,
  bodyBytes: number,
  tenant: string,
  nowMs: number,
): RequestRecord {
  return {
    requestId,
    decisionId: null,
    kind: "request",
    method: head?.method ?? "",
    path: head?.target ?? "",
    model: null,
    adapter: null,
    tenant,
    className: "",
    replica: null,
    attempt: 0,
    status: error.httpStatus,
    code: error.code,
    fault: error.fault,
    streamed: false,
    bodyBytes,
    ttftMs: null,
    e2eMs: head === null ? 0 : nowMs - head.arrivedMs,
    queueMs: 0,
    promptTokens: null,
    cachedTokensPredicted: null,
    cachedTokensReported: null,
    outputTokens: null,
  };
}

/** An attempt that another one followed. */
export function recordAttempt(
  attempt: Attempt<Placement>,
  incoming: HttpRequest,
  streamed: boolean,
  nowMs: number,
): RequestRecord {
  const { placement, error, status } = attempt;
  return {
    ...common(placement.request, incoming, streamed, nowMs),
    ...placed(placement),
    kind: "attempt",
    attempt: attempt.number,
    status: error?.httpStatus ?? status,
    code: error?.code ?? null,
    fault: error?.fault ?? null,
  };
}

/** The end of a request, however it came. */
export function recordResult(
  result: CallResult<Placement>,
  request: RouteRequest,
  incoming: HttpRequest,
  streamed: boolean,
  nowMs: number,
): RequestRecord {
  const { error, status, usage, last, attempts } = result;
  return {
    ...common(request, incoming, streamed, nowMs),
    ...(last === null ? {} : placed(last.placement)),
    ...used(usage, request),
    attempt: attempts,
    status: error?.httpStatus ?? status,
    code: error?.code ?? null,
    fault: error?.fault ?? null,
    ttftMs: timeToFirstToken(result, request),
  };
}

/** From the request's arrival; null: no token came. */
export function timeToFirstToken({ last }: CallResult<Placement>, request: RouteRequest): number | null {
  return last === null || Number.isNaN(last.firstTokenMs) ? null : last.firstTokenMs - request.arrivedMs;
}

function common(request: RouteRequest, { head, body }: HttpRequest, streamed: boolean, nowMs: number): RequestRecord {
  return {
    requestId: request.id,
    decisionId: null,
    kind: "request",
    method: head.method,
    path: head.target,
    model: request.model,
    adapter: request.adapter,
    tenant: request.tenant,
    className: request.className,
    replica: null,
    attempt: 0,
    status: 0,
    code: null,
    fault: null,
    streamed,
    bodyBytes: body.length,
    ttftMs: null,
    e2eMs: nowMs - request.arrivedMs,
    queueMs: 0,
    promptTokens: request.identity.promptTokens,
    cachedTokensPredicted: null,
    cachedTokensReported: null,
    outputTokens: null,
  };
}

function placed({ decision, replica, waitedMs, cachedTokensPredicted }: Placement): Partial<RequestRecord> {
  return { decisionId: decision.id, replica: replica.id, queueMs: waitedMs, cachedTokensPredicted };
}

function used({ promptTokens, cachedTokens, outputTokens }: Usage, { identity }: RouteRequest): Partial<RequestRecord> {
  return {
    promptTokens: promptTokens ?? identity.promptTokens,
    cachedTokensReported: cachedTokens,
    outputTokens,
  };
}
