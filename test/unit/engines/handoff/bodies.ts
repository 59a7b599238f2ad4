import type { Edit } from "#src/request/span.ts";
import type { HandoffIds, PrefillEnd } from "#src/engines/handoff/handoff.ts";
import { readBodyMembers, type BodyMembers } from "#src/request/legs/bodyMembers.ts";
import { readRequest } from "#src/request/readRequest.ts";
import { spliceBody } from "#src/request/splice.ts";

export const CHAT = "/v1/chat/completions";
export const IDS: HandoffIds = { requestId: "11111111-2222-3333-4444-555555555555", room: 9_223_372_036_854_775_807n };
export const END: PrefillEnd = {
  host: "10.0.0.7",
  bootstrapHost: null,
  bootstrapPort: null,
  engineId: null,
  tensorParallelSize: 1,
  pipelineParallelSize: 1,
};
export const AS_IS = { model: null, askUsage: false };

export function members(target: string, body: string | object): BodyMembers {
  const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  return readBodyMembers(bytes, readRequest("POST", target, "application/json", bytes))!;
}

export function text(request: BodyMembers, edits: readonly Edit[]): string {
  return Buffer.concat(spliceBody(request.body, edits)).toString("utf8");
}

export function json(request: BodyMembers, edits: readonly Edit[]): Record<string, unknown> {
  return JSON.parse(text(request, edits)) as Record<string, unknown>;
}
