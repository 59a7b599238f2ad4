import type { LegRewrite, UnsplitReason } from "#src/engines/handoff/handoff.ts";
import {
  commonObstacle,
  mustCallTool,
  OUTPUT_MEMBERS,
  prefillLimits,
  wantsMany,
} from "#src/engines/handoff/prefillLimits.ts";
import type { Role } from "#src/discovery/replicaSpec.ts";
import { legEdits, type BodyMembers } from "#src/request/legs/bodyMembers.ts";
import type { Edit } from "#src/request/span.ts";

const NOTHING: ReadonlySet<string> = new Set();

/** A vLLM with a KV connector remains a whole engine; one set aside for prefill is left out of what decodes. */
export function servesWhole(role: Role, generates: boolean): boolean {
  return role === "mixed" || role === "decode" || (role === "prefill" && !generates);
}

/** Of `n` sequences each would fetch the same blocks, which are freed after the first. */
export function vllmObstacle(request: BodyMembers): UnsplitReason | null {
  if (prefillLimits(request.shape.api) === null) return "api";
  if (wantsMany(request)) return "sequences";
  return commonObstacle(request) ?? (mustCallTool(request) ? "tool_choice" : null);
}

/** @param params the JSON of `kv_transfer_params`; null: this connector needs none */
export function prefillLeg(request: BodyMembers, { model }: LegRewrite, params: string | null): readonly Edit[] {
  const limits = prefillLimits(request.shape.api) ?? `"max_tokens":1`;
  const put = params === null ? limits : `${limits},"kv_transfer_params":${params}`;
  return legEdits(request, { without: OUTPUT_MEMBERS, put, model, askUsage: false });
}

/** The client's request as it is, with `kv_transfer_params`, or without. */
export function decodeLeg(request: BodyMembers, rewrite: LegRewrite, params: string | null): readonly Edit[] {
  const put = params === null ? "" : `"kv_transfer_params":${params}`;
  return legEdits(request, { without: NOTHING, put, ...rewrite });
}
