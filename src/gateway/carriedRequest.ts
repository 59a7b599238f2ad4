import type { Config } from "#src/config/schema.ts";
import type { Call, CallResult } from "#src/dispatch/call.ts";
import type { Downstream } from "#src/dispatch/downstream.ts";
import { adapterOf } from "#src/engines/adapters.ts";
import { anthropicErrorObject } from "#src/errors/anthropicError.ts";
import type { ErrorShape } from "#src/errors/openAiError.ts";
import { toRouterError } from "#src/errors/routerError.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { editsFor, spliceBody } from "#src/request/splice.ts";
import { explainLine } from "#src/routing/explain.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import { errorShapeOf, sendError } from "./answers.ts";
import type { GatewayParts } from "./gatewayParts.ts";
import type { Client } from "./clients.ts";
import type { HttpRequest } from "./http/httpRequest.ts";
import type { PreparedRequest } from "./preparedRequest.ts";
import { keyRateLimited } from "./refusals.ts";
import { splitBodies } from "./splitting.ts";
import { recordAttempt, recordResult, timeToFirstToken } from "./requestRecords.ts";

export interface Work {
  readonly prepared: PreparedRequest;
  readonly incoming: HttpRequest;
  readonly client: Client;
  readonly downstream: Downstream;
  readonly limits: Config["limits"];
  readonly logRequests: boolean;
}

/** Carries a prepared request to its end: rate of tokens, the call itself, then metrics and the log line. */
export function carry(work: Work, parts: GatewayParts, release: (bodyFree: boolean) => void): void {
  const { client, prepared } = work;
  const { request } = prepared;
  const { clock, fleet } = parts;
  const startedMs = clock.nowMs();
  const expected = request.generates
    ? fleet.outputLengths.expect(request.model, request.tenant, request.maxOutputTokens) * request.sequences
    : 0;
  const takenTokens = request.identity.promptTokens + expected;
  const waitMs = client.tokens?.take(takenTokens, startedMs) ?? 0;
  if (waitMs > 0) throw keyRateLimited("tokens", waitMs);
  void parts.carrier.carry(callFor(work, parts)).then((result) => {
    release(result.bodyFree);
    const nowMs = clock.nowMs();
    client.tokens?.correct(takenTokens, usedTokens(result, request.identity.promptTokens), nowMs);
    finish(work, parts, result, startedMs, nowMs);
  });
}

/** What counts against the key: what the engine reports, else what is known of the answer. */
function usedTokens({ usage, last }: CallResult<Placement>, promptTokens: number): number {
  if (last === null || last.outcome.kind === "busy") return 0;
  return (usage.promptTokens ?? promptTokens) + (usage.outputTokens ?? last.events);
}

function callFor(work: Work, parts: GatewayParts): Call<Placement> {
  const { prepared, incoming, downstream, limits, logRequests } = work;
  const { shape, request, servedName } = prepared;
  const { head, body } = incoming;
  const { metrics, log, clock } = parts;
  const askUsage = shape.stream && !shape.wantsUsage && shape.usageEdit !== null;
  const errorShape = errorShapeOf(head.target);
  const explained = head.header("x-kvasir-explain") === "1";
  const model = metrics.model(request.model);
  return {
    request,
    method: head.method,
    target: head.target,
    headers: head.headers,
    body: (placement) =>
      spliceBody(body, editsFor(shape, { model: nameForEngine(servedName, request, placement.replica), askUsage })),
    ...(prepared.members === null
      ? {}
      : {
          split: splitBodies(prepared.members, ({ prefill, replica }, leg) => ({
            model: nameForEngine(
              servedName,
              request,
              leg === "prefill" && prefill !== null ? prefill.replica : replica,
            ),
            askUsage: leg === "decode" && askUsage,
          })),
        }),
    downstream,
    limits,
    streamed: shape.stream,
    stripUsage: askUsage,
    answerHeaders: (placement) => answerHeaders(placement, errorShape, explained),
    ...(errorShape === "anthropic"
      ? { errorEvent: (error) => anthropicEvent(anthropicErrorObject(error, request.id)) }
      : {}),
    onEvents: (_placement, _events, gapMs) => {
      if (!Number.isNaN(gapMs)) model.interTokenLatency.observe(gapMs);
    },
    onAttempt: (attempt) => {
      if (!attempt.retried) return;
      metrics.retries.with(attempt.error?.code ?? attempt.outcome.kind).add();
      if (logRequests) log.request(recordAttempt(attempt, incoming, shape.stream, clock.nowMs()));
    },
  };
}

/** What the body's `model` must say on this engine; null: as the client wrote it. */
function nameForEngine(servedName: string, request: RouteRequest, replica: Placement["replica"]): string | null {
  if (request.adapter === null || replica.profile === null) return servedName;
  return adapterOf(replica.profile.kind).modelNameFor(request.model, request.adapter);
}

function answerHeaders(placement: Placement, shape: ErrorShape, explained: boolean): string[] {
  const { replica, decision, request } = placement;
  const headers = ["x-request-id", request.id, "x-kvasir-replica", replica.id, "x-kvasir-decision", decision.id];
  // Under the name that Anthropic's SDK looks for, too.
  if (shape === "anthropic") headers.push("request-id", request.id);
  if (explained) headers.push("x-kvasir-explain", `${explainLine(decision)} | ${waitWords(placement)}`);
  return headers;
}

/** What it had to wait for in the router. */
function waitWords({ request, waitedMs, queuedBehind }: Placement): string {
  return `waited=${Math.round(waitedMs)}ms behind=${queuedBehind} class=${request.className}`;
}

function anthropicEvent(object: Record<string, unknown>): string {
  return `event: error\ndata: ${JSON.stringify(object)}\n\n`;
}

function finish(
  work: Work,
  parts: GatewayParts,
  result: CallResult<Placement>,
  startedMs: number,
  nowMs: number,
): void {
  const { prepared, incoming, downstream, logRequests } = work;
  const { request, shape } = prepared;
  const { metrics, log } = parts;
  const { error, last } = result;
  try {
    if (error !== null)
      sendError(downstream, error, request.id, errorShapeOf(incoming.head.target), placeHeaders(result));
    const model = metrics.model(request.model);
    model.request(error?.httpStatus ?? result.status, error?.code ?? null);
    model.e2eLatency.observe(nowMs - request.arrivedMs);
    const ttftMs = timeToFirstToken(result, request);
    if (ttftMs !== null) model.timeToFirstToken.observe(ttftMs);
    if (last !== null && result.attempts === 1 && !Number.isNaN(last.sentMs)) {
      model.routerTime.observe(last.sentMs - startedMs - last.placement.waitedMs);
    }
    if (logRequests) log.request(recordResult(result, request, incoming, shape.stream, nowMs));
  } catch (caught) {
    log.event("error", "finishing a request failed", { requestId: request.id, cause: toRouterError(caught).message });
  }
}

function placeHeaders({ last }: CallResult<Placement>): Record<string, string> {
  if (last === null) return {};
  const { replica, decision } = last.placement;
  return { "x-kvasir-replica": replica.id, "x-kvasir-decision": decision.id };
}
