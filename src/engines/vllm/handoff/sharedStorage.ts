import type { Handoff } from "#src/engines/handoff/handoff.ts";
import { decodeLeg, prefillLeg, servesWhole, vllmObstacle } from "./prefillLeg.ts";

/**
 * vLLM's connectors with a store that both sides see (LMCache, FlexKV, HF3FS, the example connector): nothing is said; the
 * decode engine finds the blocks by the prompt. It must ask after they were written, so the legs go in turn.
 */
export const sharedStorageHandoff: Handoff = {
  name: "shared-storage",
  order: "in_turn",
  leaseMs: null,
  reusesDecodeCache: true,
  servesWhole,
  obstacle: vllmObstacle,
  prefillEdits: (request, _end, _ids, rewrite) => prefillLeg(request, rewrite, null),
  decodeBody: (request, _end, _ids, rewrite) => ({ kind: "handed_over", edits: decodeLeg(request, rewrite, null) }),
};
