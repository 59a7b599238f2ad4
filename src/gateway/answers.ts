import type { Downstream } from "#src/dispatch/downstream.ts";
import { toHttpError, type ErrorShape } from "#src/errors/openAiError.ts";
import type { RouterError } from "#src/errors/routerError.ts";

/** An answer of the router's own, whole. Does nothing if the client has gone or was already told something. */
export function sendAnswer(
  downstream: Downstream,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string | Buffer,
): void {
  if (!downstream.open || downstream.started) return;
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const flat = Object.entries(headers).flat();
  downstream.start(status, [...flat, "content-length", String(bytes.length)], "length");
  downstream.write(bytes);
  downstream.end();
}

export function sendJson(downstream: Downstream, requestId: string, status: number, body: string): void {
  sendAnswer(downstream, status, { "content-type": "application/json", "x-request-id": requestId }, body);
}

export function sendError(
  downstream: Downstream,
  error: RouterError,
  requestId: string,
  shape: ErrorShape,
  headers: Readonly<Record<string, string>> = {},
): void {
  const { status, headers: own, body } = toHttpError(error, requestId, shape);
  sendAnswer(downstream, status, { ...own, ...headers }, body);
}

/** Whose error shape a client of this path understands. */
export function errorShapeOf(target: string): ErrorShape {
  return /^\/v1\/messages(?:[/?]|$)/.test(target) ? "anthropic" : "openai";
}
