import { answerObject, answerSpan } from "#src/engines/handoff/answerSpan.ts";
import type { Handoff, UnsplitReason } from "#src/engines/handoff/handoff.ts";
import {
  commonObstacle,
  mustCallTool,
  OUTPUT_MEMBERS,
  prefillLimits,
  wantsMany,
} from "#src/engines/handoff/prefillLimits.ts";
import type { ApiKind } from "#src/request/apiKind.ts";
import { legEdits, type BodyMembers } from "#src/request/legs/bodyMembers.ts";

const APIS: ReadonlySet<ApiKind> = new Set<ApiKind>(["chat", "completions"]);
const NOTHING: ReadonlySet<string> = new Set();
const CONTEXT_ONLY = /("request_type"\s*:\s*)"context_only"/u;

/**
 * trtllm-serve: the context server's answer carries `disaggregated_params`, which go to the generation server with another
 * `request_type` and are else not touched: their ids have 63 bits.
 */
export const trtllmHandoff: Handoff = {
  name: "disaggregated-params",
  order: "in_turn",
  // `kv_transfer_timeout_ms`.
  leaseMs: 60_000,
  reusesDecodeCache: false,
  servesWhole: (role, generates) => role === "mixed" || role === "decode" || (role === "prefill" && !generates),
  obstacle,

  prefillEdits(request, _end, { room }, { model }) {
    const params = `{"request_type":"context_only","disagg_request_id":${room}}`;
    const put = `${prefillLimits(request.shape.api)},"disaggregated_params":${params}`;
    return legEdits(request, { without: OUTPUT_MEMBERS, put, model, askUsage: false });
  },

  decodeBody(request, _end, _ids, rewrite, answer) {
    const params = answer === null ? null : answerObject(answer, ["choices", 0, "disaggregated_params"]);
    const text = params?.toString("utf8") ?? "";
    // What ended with its first token has left no KV.
    if (!CONTEXT_ONLY.test(text) || !goesOn(answer!))
      return { kind: "whole", edits: legEdits(request, { without: NOTHING, put: "", ...rewrite }) };
    const put = `"disaggregated_params":${text.replace(CONTEXT_ONLY, `$1"generation_only"`)}`;
    return { kind: "handed_over", edits: legEdits(request, { without: NOTHING, put, ...rewrite }) };
  },
};

function obstacle(request: BodyMembers): UnsplitReason | null {
  if (!APIS.has(request.shape.api)) return "api";
  if (wantsMany(request)) return "sequences";
  return commonObstacle(request) ?? (mustCallTool(request) ? "tool_choice" : null);
}

function goesOn(answer: Buffer): boolean {
  const span = answerSpan(answer, ["choices", 0, "finish_reason"]);
  const reason = span === null ? "null" : answer.toString("utf8", span.start, span.end);
  return reason === `"length"` || reason === `"not_finished"` || reason === "null";
}
