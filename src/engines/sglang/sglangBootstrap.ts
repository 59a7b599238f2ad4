import type { Handoff, HandoffIds, LegRewrite, PrefillEnd, UnsplitReason } from "#src/engines/handoff/handoff.ts";
import { commonObstacle } from "#src/engines/handoff/prefillLimits.ts";
import type { ApiKind } from "#src/request/apiKind.ts";
import { legEdits, rawValue, type BodyMembers } from "#src/request/legs/bodyMembers.ts";
import type { Edit } from "#src/request/span.ts";

/** `--disaggregation-bootstrap-port`. */
const BOOTSTRAP_PORT = 8998;
const APIS: ReadonlySet<ApiKind> = new Set<ApiKind>(["chat", "completions", "sglang_generate"]);
const NOTHING: ReadonlySet<string> = new Set();

/**
 * SGLang: both sides get the same body with the prefill side's bootstrap address and a room, in which they meet. An engine
 * started for one role refuses whole requests.
 */
export const sglangHandoff: Handoff = {
  name: "bootstrap",
  order: "together",
  // A prefill engine answers once its KV is sent.
  leaseMs: null,
  reusesDecodeCache: false,
  servesWhole: (role) => role === "mixed",
  obstacle,
  prefillEdits: (request, end, ids, rewrite) => bothLegs(request, end, ids, { ...rewrite, askUsage: false }),
  decodeBody: (request, end, ids, rewrite) => ({ kind: "handed_over", edits: bothLegs(request, end, ids, rewrite) }),
};

function obstacle(request: BodyMembers): UnsplitReason | null {
  if (!APIS.has(request.shape.api)) return "api";
  // Several sequences of one prompt, or several prompts, would need a room each.
  if (request.shape.sequences > 1) return "sequences";
  const from = rawValue(request, "logprob_start_len");
  if (from !== null && Number(from) >= 0) return "prompt_logprobs";
  return commonObstacle(request);
}

/** The room is written by hand: a JavaScript number would round it. */
function bothLegs(request: BodyMembers, end: PrefillEnd, { room }: HandoffIds, rewrite: LegRewrite): readonly Edit[] {
  const host = JSON.stringify(end.bootstrapHost ?? end.host);
  const port = end.bootstrapPort ?? BOOTSTRAP_PORT;
  const put = `"bootstrap_host":${host},"bootstrap_port":${port},"bootstrap_room":${room}`;
  return legEdits(request, { without: NOTHING, put, ...rewrite });
}
