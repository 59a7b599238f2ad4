import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { handoffOf, prefillEnd } from "#src/engines/handoffs.ts";
import { sglangHandoff } from "#src/engines/sglang/sglangBootstrap.ts";
import { trtllmHandoff } from "#src/engines/trtllm/trtllmHandoff.ts";
import { mooncakeHandoff } from "#src/engines/vllm/handoff/mooncake.ts";
import { nixlPushHandoff } from "#src/engines/vllm/handoff/nixlPush.ts";
import { sharedStorageHandoff } from "#src/engines/vllm/handoff/sharedStorage.ts";
import { AS_IS, CHAT, END, IDS, json, members, text } from "./bodies.ts";

const CLIENT = `{"model":"m", "messages":[{"role":"user","content":"hi"}],"max_tokens":9,"stream":true}`;
const request = members(CHAT, CLIENT);

describe("SGLang's bootstrap", () => {
  it("sends both sides one body, the room exact", () => {
    const room = `"bootstrap_host":"10.0.0.7","bootstrap_port":8998,"bootstrap_room":9223372036854775807,`;
    const expected = `{${room}${CLIENT.slice(1)}`;
    assert.equal(text(request, sglangHandoff.prefillEdits(request, END, IDS, AS_IS)), expected);
    const decode = sglangHandoff.decodeBody(request, END, IDS, AS_IS, null);
    assert.equal(decode.kind, "handed_over");
    assert.equal(text(request, decode.edits), expected);
  });

  it("overwrites a client's own room and address", () => {
    const forged = members(CHAT, { bootstrap_room: 1, model: "m", messages: [], bootstrap_host: "evil", disagg_x: 1 });
    const body = text(forged, sglangHandoff.prefillEdits(forged, { ...END, bootstrapPort: 7 }, IDS, AS_IS));
    assert.equal(
      body,
      `{"bootstrap_host":"10.0.0.7","bootstrap_port":7,"bootstrap_room":9223372036854775807,"model":"m","messages":[]}`,
    );
  });

  it("has no engine of one role serve alone, and a room for one sequence only", () => {
    assert.equal(sglangHandoff.servesWhole("decode", true), false);
    assert.equal(sglangHandoff.servesWhole("mixed", true), true);
    assert.equal(sglangHandoff.obstacle(members(CHAT, { model: "m", messages: [], n: 2 })), "sequences");
    const generate = { text: "a", return_logprob: true, logprob_start_len: 0 };
    assert.equal(sglangHandoff.obstacle(members("/generate", generate)), "prompt_logprobs");
    assert.equal(sglangHandoff.obstacle(members("/generate", { text: "a" })), null);
  });
});

describe("TensorRT-LLM's disaggregated parameters", () => {
  const params =
    `{"request_type":"context_only","first_gen_tokens":[17],"ctx_request_id":9007199254740993,` +
    `"encoded_opaque_state":"AAAA","disagg_request_id":9223372036854775807,"draft_tokens":null}`;
  const answer = (reason: string): Buffer =>
    Buffer.from(`{"choices":[{"index":0,"finish_reason":${reason},"disaggregated_params": ${params}}]}`);

  it("limit the context leg to one token and give it an exact id", () => {
    const body = text(request, trtllmHandoff.prefillEdits(request, END, IDS, AS_IS));
    assert.ok(body.includes(`"disagg_request_id":9223372036854775807`), body);
    const { disaggregated_params: asked, ...rest } = JSON.parse(body) as Record<string, unknown>;
    assert.equal((asked as Record<string, unknown>)["request_type"], "context_only");
    assert.deepEqual(rest, {
      model: "m",
      messages: [{ role: "user", content: "hi" }],
      max_tokens: 1,
      max_completion_tokens: 1,
      stream: false,
    });
  });

  it("go on to the generation leg with another type and not one digit changed", () => {
    const { kind, edits } = trtllmHandoff.decodeBody(request, END, IDS, AS_IS, answer(`"length"`));
    assert.equal(kind, "handed_over");
    const handed = params.replace("context_only", "generation_only");
    assert.equal(text(request, edits), `{"disaggregated_params":${handed},${CLIENT.slice(1)}`);
  });

  it("are left out where the context leg ended the answer, or said nothing of use", () => {
    for (const said of [
      answer(`"stop"`),
      Buffer.from(`{"choices":[{}]}`),
      Buffer.from(`{"choices":[]}`),
      Buffer.from("x"),
    ]) {
      const { kind, edits } = trtllmHandoff.decodeBody(request, END, IDS, AS_IS, said);
      assert.equal(kind, "whole");
      assert.equal(text(request, edits), CLIENT);
    }
  });
});

describe("vLLM's connectors whose legs leave together", () => {
  const end = { ...END, engineId: "engine-1", tensorParallelSize: 2 };

  it("Mooncake: one transfer id on both", () => {
    const p = json(request, mooncakeHandoff.prefillEdits(request, end, IDS, AS_IS));
    assert.deepEqual(p["kv_transfer_params"], {
      do_remote_decode: true,
      do_remote_prefill: false,
      transfer_id: `xfer-${IDS.requestId}`,
    });
    assert.equal(p["max_tokens"], 1);
    const d = json(request, mooncakeHandoff.decodeBody(request, end, IDS, AS_IS, null).edits);
    assert.deepEqual(d["kv_transfer_params"], {
      do_remote_prefill: true,
      do_remote_decode: false,
      transfer_id: `xfer-${IDS.requestId}`,
      remote_bootstrap_addr: "http://10.0.0.7:8998",
      remote_engine_id: "engine-1",
    });
    assert.equal(d["max_tokens"], 9);
  });

  it("NIXL push: the decode side is told whom to announce its blocks to", () => {
    const d = json(request, nixlPushHandoff.decodeBody(request, end, IDS, AS_IS, null).edits);
    assert.deepEqual(d["kv_transfer_params"], {
      do_remote_prefill: true,
      do_remote_decode: false,
      remote_engine_id: "engine-1",
      remote_request_id: IDS.requestId,
      remote_host: "10.0.0.7",
      remote_port: 5600,
      tp_size: 2,
      pp_size: 1,
    });
  });

  it("send the decode leg whole where the prefill side's identity is not configured", () => {
    for (const one of [mooncakeHandoff, nixlPushHandoff]) {
      const { kind, edits } = one.decodeBody(request, END, IDS, AS_IS, null);
      assert.equal(kind, "whole");
      assert.equal(text(request, edits), CLIENT);
    }
  });
});

describe("connectors with a shared store", () => {
  it("say nothing: one token first, then the request as it is", () => {
    const p = json(request, sharedStorageHandoff.prefillEdits(request, END, IDS, AS_IS));
    assert.equal("kv_transfer_params" in p, false);
    assert.equal(p["max_tokens"], 1);
    const { edits } = sharedStorageHandoff.decodeBody(request, END, IDS, AS_IS, Buffer.from("{}"));
    assert.equal(text(request, edits), CLIENT);
  });
});

describe("which hand-off an engine has", () => {
  it("is its kind's usual one, or the one that is configured, if its kind knows it", () => {
    assert.equal(handoffOf("vllm", null)?.name, "nixl");
    assert.equal(handoffOf("vllm", "shared-storage")?.name, "shared-storage");
    assert.equal(handoffOf("sglang", null)?.name, "bootstrap");
    assert.equal(handoffOf("trtllm", null)?.name, "disaggregated-params");
    assert.equal(handoffOf("llamacpp", null), null);
    assert.equal(handoffOf("sglang", "nixl"), null);
  });

  it("meets at the host of the engine's URL unless told otherwise", () => {
    assert.equal(prefillEnd({ url: "http://[fd00::1]:8000" }).host, "fd00::1");
    assert.equal(prefillEnd({ url: "http://a:1", handoff: { bootstrapPort: 9 } }).bootstrapPort, 9);
  });
});
