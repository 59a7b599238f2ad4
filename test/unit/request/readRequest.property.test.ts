import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { RouterError } from "#src/errors/routerError.ts";
import { isForbidden } from "#src/request/forbidden.ts";
import { readRequest } from "#src/request/readRequest.ts";
import type { RequestShape } from "#src/request/requestShape.ts";
import { editsFor, spliceBody } from "#src/request/splice.ts";
import { oddBody } from "./arbitraryBodies.ts";
import { CHAT, read } from "./requestBodies.ts";

type Json = Record<string, unknown>;

/** What JSON.parse makes of the text, byte order mark aside. */
function parsed(text: string): Json {
  return JSON.parse(text.replace(/^\ufeff/, "")) as Json;
}

/** The shape, or null where the model is refused, which the properties below don't look at. */
function readOrNull(text: string): RequestShape | null {
  try {
    return read("/unknown", text);
  } catch (error) {
    assert.ok(error instanceof RouterError);
    assert.equal(error.code, "missing_model", error.message);
    return null;
  }
}

function count(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? Math.abs(value as number) : null;
}

/** The body without what no client may send, as the engine should see it. */
function withoutForbidden(body: Json): Json {
  const kept = Object.entries(body).filter(([name]) => !isForbidden(name));
  return withEntries(kept.map(([name, value]) => [name, name === "vllm_xargs" ? settings(value) : value]));
}

function settings(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(settings);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => !isForbidden(name));
  const nests = new Set(["vllm_xargs", "sampling_params", "extra_args"]);
  return withEntries(kept.map(([name, inner]) => [name, nests.has(name) ? settings(inner) : inner]));
}

/** Own properties even for `__proto__`, like JSON.parse. */
function withEntries(entries: readonly (readonly [string, unknown])[]): Json {
  return Object.fromEntries(entries);
}

describe("readRequest, beside JSON.parse", () => {
  it("finds the same values", () => {
    fc.assert(
      fc.property(oddBody, (text) => {
        const shape = readOrNull(text);
        if (shape === null) return;
        const body = parsed(text);
        assert.equal(shape.model, body["model"] ?? null);
        assert.equal(shape.stream, body["stream"] === true);
        const limit = count(body["max_completion_tokens"]) ?? count(body["max_tokens"]);
        assert.equal(shape.maxOutputTokens, limit);
        assert.equal(shape.sequences, Math.min(4096, Math.max(1, count(body["n"]) ?? 1)));
        const user = body["user"];
        assert.equal(shape.user, typeof user === "string" && user !== "" ? user : null);
        const options = body["stream_options"];
        const wanted = typeof options === "object" && options !== null && (options as Json)["include_usage"] === true;
        assert.equal(shape.wantsUsage, wanted);
      }),
      { numRuns: 800 },
    );
  });

  it("leaves the body that JSON.parse would have been asked to leave", () => {
    fc.assert(
      fc.property(oddBody, fc.string({ minLength: 1 }), (text, name) => {
        const shape = readOrNull(text);
        if (shape === null) return;
        const body = Buffer.from(text);
        const left = Buffer.concat(spliceBody(body, editsFor(shape, { model: name }))).toString();
        const expected = withoutForbidden(parsed(text));
        if ("model" in expected) expected["model"] = name;
        assert.deepEqual(parsed(left), expected);
      }),
      { numRuns: 800 },
    );
  });

  it("asks for the usage chunk and changes nothing else", () => {
    fc.assert(
      fc.property(oddBody, (text) => {
        const withStream = text.replace("{", `{"stream":true,"model":"m"${/\{\s*\}/.test(text) ? "" : ","}`);
        fc.pre(parsesAs(withStream) && parsed(withStream)["stream"] === true);
        fc.pre(readOrNull(withStream) !== null && typeof parsed(withStream)["model"] === "string");
        const body = Buffer.from(withStream);
        const shape = readRequest("POST", CHAT, "", body);
        const left = parsed(Buffer.concat(spliceBody(body, editsFor(shape, { askUsage: true }))).toString());
        const expected = withoutForbidden(parsed(withStream));
        const options = expected["stream_options"];
        if (options === undefined || options === null || (typeof options === "object" && !Array.isArray(options))) {
          expected["stream_options"] = { ...options, include_usage: true };
        }
        assert.deepEqual(left, expected);
      }),
      { numRuns: 400 },
    );
  });

  it("refuses or agrees, whatever was done to the text", () => {
    fc.assert(
      fc.property(oddBody, fc.nat(), fc.nat(8), fc.string({ maxLength: 3 }), (text, where, cut, put) => {
        const at = where % (text.length + 1);
        const damaged = text.slice(0, at) + put + text.slice(at + cut);
        let shape: RequestShape | null = null;
        try {
          shape = read("/unknown", damaged);
        } catch (error) {
          assert.ok(error instanceof RouterError, String(error));
          if (error.code === "invalid_json") assert.ok(!parsesAs(damaged), damaged);
        }
        if (shape?.encoding !== "json" || !parsesAs(damaged)) return;
        assert.equal(shape.model, parsed(damaged)["model"] ?? null);
      }),
      { numRuns: 1200 },
    );
  });
});

function parsesAs(text: string): boolean {
  try {
    const value: unknown = parsed(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
