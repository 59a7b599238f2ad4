import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readRequest } from "#src/request/readRequest.ts";
import { MAX_SEQUENCES } from "#src/request/requestShape.ts";
import { CHAT, COMPLETIONS, prose, read, throwsCode } from "./requestBodies.ts";

const MESSAGES = [{ role: "user", content: "hello" }];

describe("readRequest: model", () => {
  it("finds the member at the top level and nowhere else", () => {
    const body = {
      messages: [{ role: "user", content: 'say "model": "a" twice', model: "b" }],
      metadata: { model: "c", list: ["model", { model: "d" }] },
      model: "e",
    };
    assert.equal(read(CHAT, body).model, "e");
    assert.equal(read(CHAT, { ...body, model: undefined }).model, null);
  });

  it("recognises a key written with escapes", () => {
    assert.equal(read(CHAT, '{"mod\\u0065l":"a","messages":[]}').model, "a");
    assert.equal(read(CHAT, '{"\\u006D\\u006f\\u0064\\u0065\\u006c":"b"}').model, "b");
    assert.equal(read(CHAT, '{"mod\\\\u0065l":"a"}').model, null);
  });

  it("decodes the value", () => {
    assert.equal(read(CHAT, '{"model":"m\\u00f6d\\/\\"x\\" 日本"}').model, 'möd/"x" 日本');
  });

  it("lets the last of equal keys win, whatever stood before, as engines do", () => {
    const body = '{"model":"a","messages":[],"model":"b","m\\u006fdel":"c"}';
    const shape = read(CHAT, body);
    assert.equal(shape.model, "c");
    assert.deepEqual(shape.modelSpan, { start: body.indexOf('"c"'), end: body.indexOf('"c"') + 3 });
    assert.equal(read(CHAT, '{"model":1,"model":"","messages":[],"model":"b"}').model, "b");
    assert.equal(read(CHAT, '{"model":"a","model":null}').model, null);
  });

  it("refuses what is no name", () => {
    for (const model of [1, true, "", {}, ["a"], "x".repeat(5000)]) {
      throwsCode(() => read(CHAT, { model, messages: MESSAGES }), "missing_model");
    }
  });

  it("does without where the API does", () => {
    for (const path of ["/tokenize", "/generate", "/inference/v1/generate", "/score", "/pooling", "/unknown"]) {
      assert.equal(read(path, { prompt: "a" }).model, null);
    }
  });
});

describe("readRequest: forms of JSON", () => {
  it("takes a byte order mark and white space anywhere", () => {
    const shape = read(CHAT, '\ufeff \r\n\t{ \n"model" \t:\r\n "a" , "stream" : true , "messages" : [ ] } \n');
    assert.equal(shape.model, "a");
    assert.equal(shape.stream, true);
  });

  it("names the byte at which the structure breaks", () => {
    const cases: [body: string, message: RegExp][] = [
      ["", /object was expected at byte 0/],
      ["[]", /object was expected at byte 0/],
      ['{"model":"a"', /byte 12/],
      ['{"model":"a"} x', /something follows the end at byte 14/],
      ['{"model":"a"}{"model":"b"}', /something follows the end at byte 13/],
      ['{"model" "a"}', /':' was expected at byte 9/],
      ['{"model":"a",}', /key was expected at byte 13/],
      ['{"model":"a" "n":1}', /',' or '}' was expected at byte 13/],
      ["{'model':'a'}", /key was expected at byte 1/],
      ['{"model":"a","messages":[{"role":"user"]}', /byte 39/],
      ['{"model":"a","x":[{]}', /does not match at byte 19/],
      ['{"model":"a","x":{"y":[}', /does not match at byte 23/],
      ['{"model":"a","x":"never', /no end at byte 17/],
      ['{"model":"a","x":"never\\"', /no end at byte 17/],
      ['{"model":"a","x":maybe}', /value was expected at byte 17/],
      ['{"model":"a","x":01}', /value was expected at byte 17/],
      ['{"model":"a","x":}', /value was expected at byte 17/],
      ['{"mod\\qel":"a"}', /bad escape at byte 1/],
      ['\ufeff{"model":"a"', /byte 15/],
    ];
    for (const [body, message] of cases) throwsCode(() => read(CHAT, body), "invalid_json", message);
  });

  it("refuses UTF-16, which Python's parser would accept", () => {
    const body = Buffer.from('{"model":"a"}', "utf16le");
    throwsCode(() => readRequest("POST", CHAT, "application/json", body), "invalid_json");
    throwsCode(
      () => readRequest("POST", CHAT, "application/json", Buffer.concat([Buffer.from([0xff, 0xfe]), body])),
      "invalid_json",
    );
  });

  it("bounds the depth, in fields that it reads and in those that it passes over", () => {
    const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
    assert.equal(read(CHAT, `{"model":"a","x":${nested(500)}}`).model, "a");
    for (const field of ["x", "messages", "prompt", "tools", "sampling_params", "metadata", "stream_options"]) {
      throwsCode(() => read(CHAT, `{"model":"a","${field}":${nested(600)}}`), "invalid_json", /512 levels/);
      throwsCode(() => read(CHAT, `{"model":"a","${field}":${"[".repeat(1_000_000)}`), "invalid_json");
    }
    const objects = '{"content":'.repeat(600) + "1" + "}".repeat(600);
    throwsCode(() => read(CHAT, `{"model":"a","messages":[${objects}]}`), "invalid_json", /512 levels/);
    const parts = '[{"type":"tool_result","content":'.repeat(600) + "1" + "}]".repeat(600);
    throwsCode(
      () => read("/v1/messages", `{"model":"a","messages":[{"role":"user","content":${parts}}]}`),
      "invalid_json",
      /512 levels/,
    );
  });

  it("reads 30 MB of text, of escapes, of token ids and of nothing", () => {
    const size = 30 * 1024 * 1024;
    const bodies: [path: string, body: string][] = [
      [CHAT, JSON.stringify({ messages: [{ role: "user", content: prose(1024).repeat(size / 1024) }], model: "a" })],
      [CHAT, `{"messages":[{"role":"user","content":"${"\\\\".repeat(size / 2)}"}],"model":"a"}`],
      [CHAT, `{"messages":[{"role":"user","content":"${'\\"'.repeat(size / 2)}"}],"model":"a"}`],
      [COMPLETIONS, `{"prompt":[${"123,".repeat(size / 4)}1],"model":"a"}`],
      [COMPLETIONS, `{"prompt":"x"${" ".repeat(size)},"model":"a"}`],
    ];
    for (const [path, body] of bodies) assert.equal(read(path, body).model, "a");
    throwsCode(
      () => readRequest("POST", CHAT, "application/json", Buffer.alloc(1001), { maxBodyBytes: 1000 }),
      "body_too_large",
    );
  });

  it("bounds the plan of a prompt made of nothing but pieces", () => {
    throwsCode(
      () => read(CHAT, `{"model":"a","messages":[${"{},".repeat(2_100_000)}{}]}`),
      "invalid_request",
      /pieces/,
    );
  });
});

describe("readRequest: settings", () => {
  const chat = (settings: string) => read(CHAT, `{"model":"a","messages":[]${settings && `,${settings}`}}`);

  it("reads output limits as the engines rank them", () => {
    const cases: [settings: string, limit: number | null][] = [
      ["", null],
      ['"max_tokens":7', 7],
      ['"max_tokens":1e3', 1000],
      ['"max_tokens":1.0', 1],
      ['"max_tokens":0', 0],
      ['"max_completion_tokens":5,"max_tokens":7', 5],
      ['"max_tokens":7,"max_completion_tokens":null', 7],
      ['"max_tokens":7,"max_tokens":9', 9],
      ['"max_output_tokens":3', 3],
      ['"max_new_tokens":4', 4],
      ['"sampling_params":{"max_new_tokens":6}', 6],
      ['"sampling_params":[{"max_new_tokens":6},{"max_new_tokens":8}]', 8],
      ['"n_predict":-1', null],
      ['"max_tokens":NaN', null],
      ['"max_tokens":-5', null],
      ['"max_tokens":-Infinity', null],
      ['"max_tokens":1e400', null],
      ['"max_tokens":99999999999999999999', null],
      ['"max_tokens":2.5', null],
      ['"max_tokens":"12"', null],
      ['"max_tokens":[12]', null],
      ['"max_tokens":{"max_tokens":3}', null],
    ];
    for (const [settings, limit] of cases) assert.equal(chat(settings).maxOutputTokens, limit, settings);
  });

  it("counts sequences, within a bound", () => {
    const cases: [settings: string, sequences: number][] = [
      ["", 1],
      ['"n":3', 3],
      ['"n":0', 1],
      ['"n":-2', 1],
      ['"n":null', 1],
      ['"n":1e9', MAX_SEQUENCES],
      ['"sampling_params":{"n":4}', 4],
    ];
    for (const [settings, sequences] of cases) assert.equal(chat(settings).sequences, sequences, settings);
    assert.equal(read(COMPLETIONS, { model: "a", prompt: ["x", "y", "z"], n: 2 }).sequences, 6);
    assert.equal(read(COMPLETIONS, { model: "a", prompt: [[1, 2], [3]] }).sequences, 2);
    assert.equal(read(COMPLETIONS, { model: "a", prompt: [1, 2, 3] }).sequences, 1);
    assert.equal(read("/v1/embeddings", { model: "a", input: ["x", "y"] }).sequences, 2);
    assert.equal(read("/rerank", { model: "a", query: "q", documents: ["x", "y", "z"] }).sequences, 3);
    assert.equal(read("/generate", { input_ids: [[1], [2], [3]] }).sequences, 3);
  });

  it("reads who asks, what they expect and how soon", () => {
    const shape = chat('"user":"u","prompt_cache_key":"k","cache_salt":"s","priority":-3,"prediction":{"content":"x"}');
    assert.equal(shape.user, "u");
    assert.equal(shape.promptCacheKey, "k");
    assert.equal(shape.cacheSalt, "s");
    assert.equal(shape.priority, -3);
    assert.equal(shape.predictedOutputBytes, '{"content":"x"}'.length);
    assert.equal(chat('"safety_identifier":"s"').user, "s");
    assert.equal(chat('"metadata":{"x":{"user_id":"no"},"user_id":"m"}').user, "m");
    assert.equal(chat('"session_id":"s"').promptCacheKey, "s");
    assert.equal(chat(`"user":"${"u".repeat(2000)}"`).user, null);
    assert.equal(chat('"user":7,"priority":"high"').user, null);
    assert.equal(chat('"priority":1.5').priority, null);
  });

  it("tells streams, and who wants the usage chunk", () => {
    assert.equal(chat('"stream":true').stream, true);
    assert.equal(chat('"stream":false').stream, false);
    assert.equal(chat('"stream":true,"stream":null').stream, false);
    assert.equal(chat('"stream":true,"stream_options":{"include_usage":true}').wantsUsage, true);
    assert.equal(chat('"stream":true,"stream_options":{"include_usage":false}').wantsUsage, false);
    assert.equal(chat('"stream":true,"stream_options":{"include_usage":true},"stream_options":{}').wantsUsage, false);
  });
});

describe("readRequest: APIs", () => {
  it("knows them by method and path", () => {
    const cases: [path: string, api: string, generates: boolean][] = [
      ["/v1/chat/completions", "chat", true],
      ["/v1/chat/completions?x=1", "chat", true],
      ["/v1/completions", "completions", true],
      ["/v1/responses", "responses", true],
      ["/v1/messages", "messages", true],
      ["/v1/messages/count_tokens", "count_tokens", false],
      ["/v1/embeddings", "embeddings", false],
      ["/tokenize", "tokenize", false],
      ["/detokenize", "detokenize", false],
      ["/v1/score", "score", false],
      ["/v1/rerank", "rerank", false],
      ["/pooling", "pooling", false],
      ["/classify", "classify", false],
      ["/generate", "sglang_generate", true],
      ["/inference/v1/generate", "vllm_generate", true],
      ["/v1/anything/else", "other", false],
    ];
    for (const [path, api, generates] of cases) {
      const shape = read(path, { model: "a" });
      assert.deepEqual([shape.api, shape.generates], [api, generates], path);
    }
  });

  it("looks into any JSON object, and only into those", () => {
    assert.equal(read("/v1/anything", { model: "a" }).model, "a");
    assert.equal(readRequest("POST", "/v1/anything", "text/plain", Buffer.from('{"model":"a"}')).model, "a");
    assert.equal(readRequest("POST", "/v1/anything", "application/json", Buffer.from("[1]")).model, null);
    assert.equal(readRequest("POST", "/v1/anything", "application/octet-stream", Buffer.from([0, 1, 2])).model, null);
    assert.equal(readRequest("GET", "/v1/models", "", Buffer.alloc(0)).encoding, "none");
    throwsCode(() => read("/v1/anything", '{"model":"a"'), "invalid_json");
  });

  it("refuses the wrong kind of body", () => {
    const form = "multipart/form-data; boundary=x";
    throwsCode(() => readRequest("POST", CHAT, form, Buffer.from("--x--")), "unsupported_media_type");
    throwsCode(() => read("/v1/audio/transcriptions", { model: "a" }), "unsupported_media_type");
  });
});
