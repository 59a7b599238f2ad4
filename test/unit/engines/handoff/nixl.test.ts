import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nixlHandoff } from "#src/engines/vllm/handoff/nixl.ts";
import exchanges from "../../../recorded/vllm-0.32.0-nixl/exchanges.json" with { type: "json" };
import { AS_IS, CHAT, END, IDS, json, members, text } from "./bodies.ts";

function recorded(label: string) {
  return exchanges.find((one) => one.label === label)!;
}

const ANSWER = Buffer.from(recorded("p-prefill").body);
const PARAMS = /"kv_transfer_params":(\{"do_remote_prefill".*?\})/u.exec(recorded("p-prefill").body)![1]!;

describe("vLLM's NIXL hand-off, on recorded bytes", () => {
  const { request: sent } = recorded("d-decode");
  const { kv_transfer_params: _params, ...client } = sent;
  const request = members("/v1/completions", client);

  it("asks the prefill engine as it was asked when this was recorded", () => {
    const leg = json(request, nixlHandoff.prefillEdits(request, END, IDS, AS_IS));
    const { return_token_ids: _asked, ...expected } = recorded("p-prefill").request as Record<string, unknown>;
    assert.deepEqual(leg, expected);
  });

  it("hands the answer's parameters on byte for byte, and the rest of the request as the client wrote it", () => {
    const { kind, edits } = nixlHandoff.decodeBody(request, END, IDS, AS_IS, ANSWER);
    assert.equal(kind, "handed_over");
    assert.equal(text(request, edits), `{"kv_transfer_params":${PARAMS},${JSON.stringify(client).slice(1)}`);
    assert.deepEqual(json(request, edits), sent);
  });

  it("copies what no JavaScript number can hold", () => {
    const odd = PARAMS.replace(`"remote_port":15601`, `"remote_port":15601,"lease":18446744073709551615,"x": [1.0 ]`);
    const answer = Buffer.from(`{"choices":[],"kv_transfer_params": ${odd} ,"metrics":null}`);
    const { edits } = nixlHandoff.decodeBody(request, END, IDS, AS_IS, answer);
    assert.ok(text(request, edits).startsWith(`{"kv_transfer_params":${odd},`));
  });

  it("sends no parameters that lack something: an engine ends its process over them", () => {
    const without = (name: string): string => {
      const params = JSON.parse(PARAMS) as Record<string, unknown>;
      delete params[name];
      return `{"kv_transfer_params":${JSON.stringify(params)}}`;
    };
    const bad = [
      ...[
        "do_remote_prefill",
        "remote_engine_id",
        "remote_request_id",
        "remote_host",
        "remote_port",
        "remote_block_ids",
      ].map(without),
      `{"kv_transfer_params":null}`,
      `{"kv_transfer_params":"x"}`,
      `{"kv_transfer_params":${PARAMS.replace("[[1,2,3,10]]", "[[]]")}}`,
      `{}`,
      `[]`,
      ``,
      `{"kv_transfer_params":{"do_remote_prefill":tru`,
      `<html>`,
    ];
    for (const answer of bad) {
      const { kind, edits } = nixlHandoff.decodeBody(request, END, IDS, AS_IS, Buffer.from(answer));
      assert.equal(kind, "whole", answer);
      assert.equal(text(request, edits), JSON.stringify(client), answer);
    }
  });
});

describe("the limits of a vLLM prefill leg", () => {
  const LIMITS = {
    max_tokens: 500,
    max_completion_tokens: 400,
    max_output_tokens: 300,
    min_tokens: 50,
    n: 1,
    best_of: 1,
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
    logprobs: true,
    top_logprobs: 5,
    return_token_ids: true,
    store: true,
  };
  const PROMPTS: Record<string, object> = {
    [CHAT]: { messages: [{ role: "user", content: 'é "x" \u{1F600}' }] },
    "/v1/completions": { prompt: "once" },
    "/v1/responses": { input: "once" },
    "/v1/messages": { messages: [{ role: "user", content: "once" }] },
  };
  const OUTPUT: Record<string, object> = {
    [CHAT]: { max_tokens: 1, max_completion_tokens: 1, stream: false },
    "/v1/completions": { max_tokens: 1, stream: false },
    "/v1/responses": { max_output_tokens: 1, store: false, stream: false },
    "/v1/messages": { max_tokens: 1, stream: false },
  };
  for (const [target, prompt] of Object.entries(PROMPTS)) {
    it(`of ${target} are one token in one piece; the decode leg keeps the client's`, () => {
      const orders = [
        { model: "m", ...prompt, ...LIMITS, temperature: 0.5 },
        { ...LIMITS, model: "m", temperature: 0.5, ...prompt },
        { model: "m", temperature: 0.5, ...prompt, kv_transfer_params: { do_remote_prefill: true }, ...LIMITS },
        { bootstrap_room: 7, ...LIMITS, model: "m", temperature: 0.5, ...prompt, rid: "x" },
      ];
      for (const body of orders) {
        const request = members(target, body);
        assert.equal(nixlHandoff.obstacle(request), null);
        const { kv_transfer_params: asked, ...leg } = json(request, nixlHandoff.prefillEdits(request, END, IDS, AS_IS));
        assert.deepEqual(leg, { model: "m", temperature: 0.5, ...prompt, ...OUTPUT[target] });
        assert.deepEqual(asked, {
          do_remote_decode: true,
          do_remote_prefill: false,
          remote_engine_id: null,
          remote_block_ids: null,
          remote_host: null,
          remote_port: null,
        });
        const { edits } = nixlHandoff.decodeBody(request, END, IDS, AS_IS, ANSWER);
        const { kv_transfer_params: params, ...decode } = json(request, edits);
        assert.deepEqual(decode, { model: "m", temperature: 0.5, ...prompt, ...LIMITS });
        assert.equal(JSON.stringify(params), PARAMS);
      }
    });
  }

  it("are found whatever their names look like, and inner forbidden members go as well", () => {
    const request = members(
      CHAT,
      `{"m\\u0061x_tokens" : 9, "model":"m","messages":[], "vllm_xargs":{"kv_transfer_params":{},"a":1}, "stream" :true }`,
    );
    const leg = json(request, nixlHandoff.prefillEdits(request, END, IDS, { model: "served", askUsage: true }));
    const { kv_transfer_params: _params, ...rest } = leg;
    assert.deepEqual(rest, {
      model: "served",
      messages: [],
      vllm_xargs: { a: 1 },
      max_tokens: 1,
      max_completion_tokens: 1,
      stream: false,
    });
  });

  it("leave the usage that the router asks for to the decode leg", () => {
    const request = members(CHAT, { model: "m", messages: [], stream: true });
    const rewrite = { model: null, askUsage: true };
    assert.ok(!("stream_options" in json(request, nixlHandoff.prefillEdits(request, END, IDS, rewrite))));
    const { edits } = nixlHandoff.decodeBody(request, END, IDS, rewrite, ANSWER);
    assert.deepEqual(json(request, edits)["stream_options"], { include_usage: true });
  });
});

describe("what vLLM does not split", () => {
  const chat = { model: "m", messages: [] };
  const cases: [target: string, body: object, reason: string | null][] = [
    [CHAT, { ...chat, n: 2 }, "sequences"],
    ["/v1/completions", { model: "m", prompt: ["a", "b"] }, "sequences"],
    ["/v1/completions", { model: "m", prompt: "a", best_of: 3 }, "sequences"],
    [CHAT, { ...chat, use_beam_search: true }, "beam_search"],
    [CHAT, { ...chat, prompt_logprobs: 0 }, "prompt_logprobs"],
    [CHAT, { ...chat, prompt_logprobs: null }, null],
    ["/v1/completions", { model: "m", prompt: "a", echo: true, logprobs: 1 }, "prompt_logprobs"],
    [CHAT, { ...chat, logprobs: true, top_logprobs: 3 }, null],
    [CHAT, { ...chat, tools: [{ type: "function" }] }, null],
    [CHAT, { ...chat, tools: [], tool_choice: "auto" }, null],
    [CHAT, { ...chat, tools: [], tool_choice: "required" }, "tool_choice"],
    [CHAT, { ...chat, tool_choice: { type: "function", function: { name: "f" } } }, "tool_choice"],
    ["/v1/messages", { ...chat, tool_choice: { type: "auto" } }, null],
    ["/v1/messages", { ...chat, tool_choice: { type: "any" } }, "tool_choice"],
    ["/v1/responses", { model: "m", input: "a", previous_response_id: "r" }, "stored_state"],
    ["/v1/responses", { model: "m", input: "a", background: true }, "stored_state"],
    ["/v1/embeddings", { model: "m", input: "a" }, "api"],
    ["/inference/v1/generate", { model: "m", token_ids: [1] }, "api"],
    ["/v1/completions", { model: "m", prompt: "a", max_tokens: 0 }, "no_output"],
  ];
  for (const [target, body, reason] of cases)
    it(`${reason ?? "splits"}: ${target} ${JSON.stringify(body)}`, () =>
      assert.equal(nixlHandoff.obstacle(members(target, body)), reason));
});
