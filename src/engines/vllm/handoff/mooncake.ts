import type { Handoff } from "#src/engines/handoff/handoff.ts";
import { decodeLeg, prefillLeg, servesWhole, vllmObstacle } from "./prefillLeg.ts";

/** `VLLM_MOONCAKE_BOOTSTRAP_PORT`. */
const BOOTSTRAP_PORT = 8998;

/** vLLM's MooncakeConnector: both legs leave together with one transfer id, by which the prefill side sends. */
export const mooncakeHandoff: Handoff = {
  name: "mooncake",
  order: "together",
  // `VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT`.
  leaseMs: 480_000,
  reusesDecodeCache: true,
  servesWhole,
  obstacle: vllmObstacle,

  prefillEdits(request, _end, { requestId }, rewrite) {
    const params = { do_remote_decode: true, do_remote_prefill: false, transfer_id: `xfer-${requestId}` };
    return prefillLeg(request, rewrite, JSON.stringify(params));
  },

  decodeBody(request, end, { requestId }, rewrite) {
    if (end.engineId === null) return { kind: "whole", edits: decodeLeg(request, rewrite, null) };
    const host = end.bootstrapHost ?? end.host;
    const params = JSON.stringify({
      do_remote_prefill: true,
      do_remote_decode: false,
      transfer_id: `xfer-${requestId}`,
      remote_bootstrap_addr: `http://${host.includes(":") ? `[${host}]` : host}:${end.bootstrapPort ?? BOOTSTRAP_PORT}`,
      remote_engine_id: end.engineId,
    });
    return { kind: "handed_over", edits: decodeLeg(request, rewrite, params) };
  },
};
