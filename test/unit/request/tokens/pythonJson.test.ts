import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { PyFloat, type Value } from "#src/request/tokens/jinja/values.ts";
import { parsePythonJson, PythonJsonError } from "#src/request/tokens/pythonJson.ts";
import { TokenFallback } from "#src/request/tokens/tokenFallback.ts";

function plain(value: Value): unknown {
  if (value instanceof PyFloat) return value.value;
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, plain(item)]));
  return value;
}

test("reads what JSON.parse reads", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom("", " ", "\n\t "), (value, space) => {
      const json = space + JSON.stringify(value, null, space) + space;
      assert.deepEqual(plain(parsePythonJson(json)), JSON.parse(json));
    }),
  );
});

test("tells integers from floats, and keeps what JavaScript would lose", () => {
  assert.deepEqual(parsePythonJson("[1, 1.0, 1e2, 9007199254740993, -0]"), [
    1,
    new PyFloat(1),
    new PyFloat(100),
    9007199254740993n,
    0,
  ]);
  const object = parsePythonJson('{"z": 1, "10": 2, "2": 3, "z": 4}') as Map<string, number>;
  assert.deepEqual(
    [...object],
    [
      ["z", 4],
      ["10", 2],
      ["2", 3],
    ],
  );
  assert.ok(Number.isNaN((parsePythonJson("NaN") as PyFloat).value));
});

test("finds the end of strings behind any number of backslashes", () => {
  for (const text of ['a"b', "\\", '\\"', '\\\\"\\', "é\n\u2028👍"])
    assert.equal(parsePythonJson(JSON.stringify(text)), text);
});

test("refuses what json.loads refuses", () => {
  const wrong = [
    "",
    "{",
    "[1,]",
    '{"a" 1}',
    "{a: 1}",
    "01",
    "1.",
    ".5",
    "+1",
    "'a'",
    '"\n"',
    '"\\x"',
    '"a',
    "nul",
    "[1 2]",
    "1 2",
  ];
  for (const json of wrong) assert.throws(() => parsePythonJson(json), PythonJsonError, json);
  assert.throws(() => parsePythonJson("[".repeat(10_000)), PythonJsonError, "depth is bounded");
});

test("gives up on more than a million values", () => {
  const list = (values: number): string => `[${"0,".repeat(values - 2)}0]`;
  assert.equal((parsePythonJson(list(1_000_000)) as Value[]).length, 999_999);
  assert.throws(
    () => parsePythonJson(list(1_000_001)),
    (error) => error instanceof TokenFallback && error.reason === "too_many_values",
  );
});
