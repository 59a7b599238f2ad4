import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { UsageStripper } from "#src/dispatch/usageStripper.ts";

function strip(...pieces: string[]): string {
  const stripper = new UsageStripper();
  let out = "";
  const emit = (bytes: Buffer, start: number, end: number): void => void (out += bytes.toString("utf8", start, end));
  for (const piece of pieces) {
    const bytes = Buffer.from(piece);
    stripper.push(bytes, 0, bytes.length, emit);
  }
  stripper.finish(emit);
  return out;
}

const TOKEN = 'data: {"choices":[{"delta":{"content":"[]"}}]}\n\n';
const USAGE = 'data: {"id":"a","choices":[],"usage":{"prompt_tokens":1}}\n\n';
const SPACED = 'data: {"choices": [ ], "usage": {"prompt_tokens": 1}}\r\n\r\n';
const DONE = "data: [DONE]\n\n";

describe("UsageStripper", () => {
  test("takes out the usage chunk, however it is written", () => {
    assert.equal(strip(TOKEN + USAGE + DONE), TOKEN + DONE);
    assert.equal(strip(TOKEN + SPACED + DONE), TOKEN + DONE);
    assert.equal(strip(USAGE), "");
  });

  const kept: Record<string, string> = {
    "a chunk with choices and usage": 'data: {"choices":[{"index":0}],"logprobs":[],"usage":{"prompt_tokens":1}}\n\n',
    "empty choices without usage (a prompt filter's)": 'data: {"choices":[],"prompt_filter_results":[]}\n\n',
    "empty choices with usage null": 'data: {"choices":[],"usage":null}\n\n',
    "what is no JSON": 'data: {"choices":[],"usage":{\n\n',
    "an unfinished event at the end": 'data: {"choices":[],"usage":{"prompt_tokens":1}}',
    comments: ": []\n\n",
  };
  for (const [name, event] of Object.entries(kept)) {
    test(`leaves ${name}`, () => assert.equal(strip(TOKEN, event), TOKEN + event));
  }

  test("wherever the stream is cut", () => {
    const event = fc.constantFrom(
      TOKEN,
      USAGE,
      SPACED,
      ": []\n\n",
      'data: two\ndata: "[]"\n\n',
      "event: e\r\ndata:x\r\n\r\n",
    );
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 12 }),
        fc.array(fc.nat({ max: 700 }), { maxLength: 10 }),
        (events, cuts) => {
          const text = events.join("");
          const points = [0, ...cuts.map((cut) => Math.min(cut, text.length)), text.length].toSorted((a, b) => a - b);
          const expected = events.filter((each) => each !== USAGE && each !== SPACED).join("");
          assert.equal(strip(...points.slice(1).map((to, i) => text.slice(points[i], to))), expected);
        },
      ),
    );
  });

  test("an event without end is not held without end", () => {
    const stripper = new UsageStripper();
    const piece = Buffer.alloc(10_000, "x");
    let passed = 0;
    for (let i = 0; i < 100; i++)
      stripper.push(piece, 0, piece.length, (_bytes, start, end) => (passed += end - start));
    assert.ok(1_000_000 - passed <= 75_536);
    const rest = Buffer.from(`\n\n${USAGE}${TOKEN}`);
    let tail = "";
    stripper.push(rest, 0, rest.length, (bytes, start, end) => (tail += bytes.toString("utf8", start, end)));
    assert.ok(tail.endsWith(TOKEN) && !tail.includes("usage"));
  });
});
