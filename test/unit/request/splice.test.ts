import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { editsFor, spliceBody } from "#src/request/splice.ts";
import { bytesOf, CHAT, read, rewritten, throwsCode } from "./requestBodies.ts";

describe("spliceBody", () => {
  it("hands on the body itself when nothing changes", () => {
    const body = bytesOf({ model: "a", messages: [] });
    assert.equal(spliceBody(body, editsFor(read(CHAT, body.toString())))[0], body);
  });

  it("shares the memory of what stays", () => {
    // Not from the pool that small buffers share.
    const body = Buffer.alloc(10);
    body.write("0123456789");
    const pieces = spliceBody(body, [
      { start: 0, end: 1, replacement: "ä" },
      { start: 4, end: 4, replacement: "-" },
      { start: 8, end: 10, replacement: "" },
    ]);
    assert.equal(Buffer.concat(pieces).toString(), "ä123-4567");
    const kept = pieces.filter((piece) => piece.buffer === body.buffer);
    assert.deepEqual(kept.map(String), ["123", "4567"]);
  });

  it("joins what falls into many pieces", () => {
    const body = Buffer.from("ab".repeat(50));
    const edits = Array.from({ length: 50 }, (_, i) => ({ start: 2 * i, end: 2 * i + 1, replacement: "x" }));
    assert.deepEqual(spliceBody(body, edits).map(String), ["xb".repeat(50)]);
  });

  it("refuses edits that overlap or lie outside", () => {
    const body = Buffer.from("0123456789");
    const edit = (start: number, end: number) => ({ start, end, replacement: "" });
    assert.throws(() => spliceBody(body, [edit(2, 5), edit(4, 6)]), RangeError);
    assert.throws(() => spliceBody(body, [edit(8, 11)]), RangeError);
    assert.throws(() => spliceBody(body, [edit(5, 4)]), RangeError);
  });
});

describe("editsFor", () => {
  it("writes another model name where it counts and touches nothing else", () => {
    const body = '{ "model" : "a\\n", "temperature":0.70, "unknown":{"model":"a"},"model":"b" }';
    assert.equal(
      rewritten(CHAT, body, { model: 'x"y' }),
      '{ "model" : "a\\n", "temperature":0.70, "unknown":{"model":"a"},"model":"x\\"y" }',
    );
    assert.equal(rewritten(CHAT, body, { model: "b" }), body);
    assert.equal(rewritten(CHAT, body, { model: null }), body);
  });

  it("takes out what no client may send, commas included", () => {
    const cases: [body: string, left: string][] = [
      ['{"rid":1,"model":"a"}', '{"model":"a"}'],
      ['{"model":"a","rid":1}', '{"model":"a"}'],
      ['{"model":"a" , "rid":1 , "n":1}', '{"model":"a" , "n":1}'],
      ['{"rid":1,"model":"a","bootstrap_room":[1,{"x":"}"}],"kv_transfer_params":{"a":{}}}', '{"model":"a"}'],
      ['{"rid":1,"request_id":"x","model":"a"}', '{"model":"a"}'],
      ['{"r\\u0069d":1,"model":"a","rid":2}', '{"model":"a"}'],
      ['{ "model":"a","disagg_prefill_dp_rank":0 }', '{ "model":"a" }'],
    ];
    for (const [body, left] of cases) assert.equal(rewritten(CHAT, body), left, body);
    assert.equal(rewritten("/generate", '{"rid":"x","bootstrap_host":"y"}'), "{}");
  });

  it("are few, however often a body repeats itself", () => {
    const models = `{${'"model":"a",'.repeat(25_000)}"messages":[]}`;
    assert.equal(editsFor(read(CHAT, models), { model: "b" }).length, 1);
    const removed = `{${'"rid":1,'.repeat(25_000)}"model":"a"}`;
    assert.equal(rewritten(CHAT, removed), '{"model":"a"}');
    throwsCode(() => read(CHAT, `{${'"rid":1,"x":1,'.repeat(2_000)}"model":"a"}`), "invalid_request");
  });

  it("knows every name of a hand-off", () => {
    const names = [
      "kv_transfer_params",
      "ec_transfer_params",
      "bootstrap_host",
      "bootstrap_port",
      "bootstrap_room",
      "disaggregated_params",
      "disagg_request_id",
      "routed_dp_rank",
      "data_parallel_rank",
      "remote_engine_id",
      "remote_block_ids",
      "do_remote_decode",
      "request_id",
      "rid",
    ];
    for (const name of names) {
      assert.equal(rewritten(CHAT, { [name]: { x: 1 }, model: "a" }), '{"model":"a"}', name);
      assert.equal(rewritten("/v1/unknown", { x: 1, [name]: 7 }), '{"x":1}', name);
    }
  });

  it("takes them out of the objects that engines merge into their own settings", () => {
    assert.equal(
      rewritten(CHAT, '{"model":"a","vllm_xargs":{"x":1,"kv_transfer_params":{"y":2}},"rid":3}'),
      '{"model":"a","vllm_xargs":{"x":1}}',
    );
    assert.equal(
      rewritten("/inference/v1/generate", '{"sampling_params":{"extra_args":{"kv_transfer_params":{}},"n":1}}'),
      '{"sampling_params":{"extra_args":{},"n":1}}',
    );
    assert.equal(
      rewritten("/generate", '{"sampling_params":[{"rid":1},{"n":1,"rid":2}]}'),
      '{"sampling_params":[{},{"n":1}]}',
    );
  });

  it("leaves such names alone where they are the client's data", () => {
    const body = '{"model":"a","messages":[{"role":"user","content":"x","rid":"y"}],"metadata":{"request_id":"z"}}';
    assert.equal(rewritten(CHAT, body), body);
  });

  it("asks for the usage chunk where the client did not", () => {
    const asked = '"stream_options":{"include_usage":true}';
    const cases: [body: string, left: string][] = [
      ['{"model":"a","stream":true}', `{${asked},"model":"a","stream":true}`],
      ['{"model":"a","stream":true,"stream_options":null}', `{"model":"a","stream":true,${asked}}`],
      [
        '{"model":"a","stream":true,"stream_options":{ }}',
        `{"model":"a","stream":true,"stream_options":{"include_usage":true }}`,
      ],
      [
        '{"model":"a","stream":true,"stream_options":{"x":1}}',
        '{"model":"a","stream":true,"stream_options":{"include_usage":true,"x":1}}',
      ],
      [
        '{"model":"a","stream":true,"stream_options":{"include_usage":false}}',
        '{"model":"a","stream":true,"stream_options":{"include_usage":true}}',
      ],
      [`{"model":"a","stream":true,${asked}}`, `{"model":"a","stream":true,${asked}}`],
      ['{"model":"a","stream":true,"stream_options":7}', '{"model":"a","stream":true,"stream_options":7}'],
      ['{"model":"a","stream":false}', '{"model":"a","stream":false}'],
      ['{"model":"a"}', '{"model":"a"}'],
    ];
    for (const [body, left] of cases) assert.equal(rewritten(CHAT, body, { askUsage: true }), left);
    const responses = '{"model":"a","stream":true}';
    assert.equal(rewritten("/v1/responses", responses, { askUsage: true }), responses);
  });

  it("puts all of it together in order", () => {
    assert.equal(
      rewritten(CHAT, '{"rid":1,"stream":true,"model":"a","data_parallel_rank":3}', { model: "b", askUsage: true }),
      '{"stream_options":{"include_usage":true},"stream":true,"model":"b"}',
    );
  });
});
