import type { Handoff } from "#src/engines/handoff/handoff.ts";
import { decodeLeg, prefillLeg, servesWhole, vllmObstacle } from "./prefillLeg.ts";

const ASKED = `{"do_remote_decode":true,"do_remote_prefill":false}`;
/** `VLLM_NIXL_SIDE_CHANNEL_PORT`. */
const SIDE_CHANNEL_PORT = 5600;

/**
 * vLLM's NixlPushConnector: the decode engine announces its blocks to the prefill engine, which writes into them. Both
 * legs leave together and find each other by their request id, so the prefill side's identity must be known beforehand.
 */
export const nixlPushHandoff: Handoff = {
  name: "nixl-push",
  order: "together",
  // `kv_lease_duration`.
  leaseMs: 30_000,
  reusesDecodeCache: true,
  servesWhole,
  obstacle: vllmObstacle,
  prefillEdits: (request, _end, _ids, rewrite) => prefillLeg(request, rewrite, ASKED),

  decodeBody(request, end, { requestId }, rewrite) {
    if (end.engineId === null) return { kind: "whole", edits: decodeLeg(request, rewrite, null) };
    const params = JSON.stringify({
      do_remote_prefill: true,
      do_remote_decode: false,
      remote_engine_id: end.engineId,
      remote_request_id: requestId,
      remote_host: end.bootstrapHost ?? end.host,
      remote_port: end.bootstrapPort ?? SIDE_CHANNEL_PORT,
      tp_size: end.tensorParallelSize,
      pp_size: end.pipelineParallelSize,
    });
    return { kind: "handed_over", edits: decodeLeg(request, rewrite, params) };
  },
};
