import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { readRequest } from "#src/request/readRequest.ts";
import type { RequestShape } from "#src/request/requestShape.ts";
import { editsFor, type Rewrite, spliceBody } from "#src/request/splice.ts";
import { throwsCode } from "./requestBodies.ts";

const PATH = "/v1/audio/transcriptions";
const TYPE = "multipart/form-data; boundary=frontier";

interface Field {
  readonly name: string;
  readonly value: Buffer | string;
  readonly extra?: string;
}

function form(fields: readonly Field[]): Buffer {
  const parts = fields.flatMap(({ name, value, extra = "" }) => [
    Buffer.from(`--frontier\r\nContent-Disposition: form-data; name="${name}"${extra}\r\n\r\n`),
    Buffer.from(value),
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([...parts, Buffer.from("--frontier--\r\n")]);
}

function read(body: Buffer, type = TYPE): RequestShape {
  return readRequest("POST", PATH, type, body);
}

function rewritten(body: Buffer, rewrite: Rewrite): Buffer {
  return Buffer.concat(spliceBody(body, editsFor(read(body), rewrite)));
}

const AUDIO: Field = {
  name: "file",
  // Looks like the end of the part, and is not.
  value: Buffer.from('RIFF\r\n--frontie\r\n\r\nname="model"\r\n\r\n--fronti\0\xff"{', "latin1"),
  extra: '; filename="a.wav"\r\nContent-Type: audio/wav',
};

describe("multipart forms", () => {
  it("find model and stream anywhere in the form", () => {
    const model: Field = { name: "model", value: "whisper-1" };
    const stream: Field = { name: "stream", value: "true" };
    const language: Field = { name: "language", value: "de" };
    for (const fields of [
      [model, AUDIO, stream, language],
      [AUDIO, language, stream, model],
      [language, stream, model, AUDIO],
    ]) {
      const shape = read(form(fields));
      assert.equal(shape.model, "whisper-1");
      assert.equal(shape.stream, true);
      assert.equal(shape.api, "audio");
      assert.equal(shape.encoding, "multipart");
    }
  });

  it("change the model's value and no other byte", () => {
    const fields = (model: string): Field[] => [AUDIO, { name: "model", value: model }, { name: "prompt", value: "x" }];
    assert.deepEqual(rewritten(form(fields("a")), { model: "größer" }), form(fields("größer")));
    assert.deepEqual(rewritten(form(fields("a")), {}), form(fields("a")));
  });

  it("let the last model win and rewrite that", () => {
    const fields = (a: string, b: string): Buffer =>
      form([{ name: "model", value: a }, AUDIO, { name: "model", value: b }]);
    assert.equal(read(fields("a", "b")).model, "b");
    assert.deepEqual(rewritten(fields("a", "b"), { model: "c" }), fields("a", "c"));
  });

  it("lose the parts that no client may send", () => {
    const model: Field = { name: "model", value: "a" };
    const rid: Field = { name: "rid", value: "x" };
    assert.deepEqual(rewritten(form([rid, AUDIO, rid, model, rid]), {}), form([AUDIO, model]));
  });

  it("survive any file content", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (content) => {
        const file = Buffer.from(content);
        fc.pre(!file.includes("\r\n--frontier"));
        const body = form([
          { name: "file", value: file },
          { name: "model", value: "m" },
        ]);
        assert.equal(read(body).model, "m");
      }),
    );
  });

  it("read quoted boundaries, preambles, padding and escaped names", () => {
    const body = form([{ name: "model", value: "a" }]);
    assert.equal(read(body, 'Multipart/Form-Data; charset=x; boundary="frontier"').model, "a");
    assert.equal(read(Buffer.concat([Buffer.from("preamble\r\n"), body])).model, "a");
    assert.equal(read(Buffer.from(body.toString().replace("--frontier\r\n", "--frontier \t\r\n"))).model, "a");
    assert.equal(read(Buffer.from(body.toString().replace('name="model"', 'name="mo\\del"'))).model, "a");
    assert.equal(read(Buffer.from(body.toString().replace('name="model"', "name=model"))).model, "a");
    assert.equal(
      read(
        form([
          { name: "model", value: "" },
          { name: "model", value: "b" },
        ]),
      ).model,
      "b",
    );
  });

  it("are refused when they are broken, or could be read in two ways", () => {
    const whole = form([AUDIO, { name: "model", value: "a" }]).toString("latin1");
    const broken: [body: string, type?: string][] = [
      [whole, "multipart/form-data"],
      [whole, "multipart/form-data; boundary=other"],
      [whole.replace("--frontier--\r\n", "")],
      [whole.slice(0, 60)],
      [whole.replace('; name="model"', '; name*="model"')],
      [whole.replace('; name="model"', "")],
      [whole.replace("--frontier\r\n", "--frontierX\r\n")],
      [whole.replace('; name="model"', '; name="model"\r\nContent-Disposition: form-data; name="x"')],
      [form(Array.from({ length: 1001 }, () => ({ name: "x", value: "y" }))).toString()],
      [form([{ name: "model", value: "a".repeat(2000) }]).toString()],
    ];
    for (const [body, type] of broken) {
      throwsCode(() => read(Buffer.from(body, "latin1"), type), "invalid_request", /multipart/);
    }
    assert.equal(read(form([AUDIO])).model, null);
    assert.equal(read(form([{ name: "model", value: "" }])).model, null);
  });
});
