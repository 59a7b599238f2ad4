import { answerObject } from "#src/engines/handoff/answerSpan.ts";
import type { Handoff } from "#src/engines/handoff/handoff.ts";
import { decodeLeg, prefillLeg, servesWhole, vllmObstacle } from "./prefillLeg.ts";

const ASKED =
  `{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,` +
  `"remote_block_ids":null,"remote_host":null,"remote_port":null}`;

/**
 * vLLM's NixlConnector (and NixlPullConnector): the prefill engine answers with where its blocks are, and the decode engine
 * reads them from there. The answer's object is handed on byte for byte.
 */
export const nixlHandoff: Handoff = {
  name: "nixl",
  order: "in_turn",
  // `kv_lease_duration`. Engines before it kept the KV for 480 s; nobody counts on that.
  leaseMs: 30_000,
  reusesDecodeCache: true,
  servesWhole,
  obstacle: vllmObstacle,
  prefillEdits: (request, _end, _ids, rewrite) => prefillLeg(request, rewrite, ASKED),

  decodeBody(request, _end, _ids, rewrite, answer) {
    const params = answer === null ? null : answerObject(answer, ["kv_transfer_params"]);
    if (params === null || !complete(params)) return { kind: "whole", edits: decodeLeg(request, rewrite, null) };
    return { kind: "handed_over", edits: decodeLeg(request, rewrite, params.toString("utf8")) };
  },
};

/** An engine that is handed incomplete parameters ends its process (seen with 0.32). Without any, it computes the prompt. */
function complete(bytes: Buffer): boolean {
  const params = JSON.parse(bytes.toString("utf8")) as Record<string, unknown>;
  const { remote_block_ids: blocks, remote_port: port } = params;
  return (
    params["do_remote_prefill"] === true &&
    Array.isArray(blocks) &&
    blocks.flat().length > 0 &&
    ["remote_engine_id", "remote_request_id", "remote_host"].every((name) => typeof params[name] === "string") &&
    (typeof port === "number" || typeof port === "string")
  );
}
