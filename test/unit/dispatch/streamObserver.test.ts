import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { StreamObserver } from "#src/dispatch/streamObserver.ts";

function observe(...pieces: (string | Buffer)[]): StreamObserver {
  const observer = new StreamObserver();
  pieces.forEach((piece, at) => {
    const bytes = Buffer.from(piece);
    observer.observe(bytes, 0, bytes.length, at);
  });
  return observer;
}

describe("StreamObserver", () => {
  test("counts data lines only, with or without a space, LF or CRLF", () => {
    const observer = observe(": c\n\ndata: a\n\nevent: x\r\ndata:b\r\n\r\nid: data:\n\ndatax: y\n\n");
    assert.equal(observer.events, 2);
  });

  test("vLLM's role chunk is the first token", () => {
    const observer = observe(": ping\n\n", 'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n');
    assert.equal(observer.firstTokenMs, 1);
    assert.equal(observer.tokenEvents, 1);
  });

  test("announcements are not: Anthropic's and those of responses", () => {
    const anthropic = observe(
      'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}\n\n',
      'event: ping\ndata: {"type": "ping"}\n\n',
      'event: content_block_start\ndata: {"type":"content_block_start"}\n\n',
      'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":4}}\n\n',
    );
    assert.equal(anthropic.firstTokenMs, 2);
    assert.equal(anthropic.tokenEvents, 2);
    assert.deepEqual(anthropic.usage(), { promptTokens: 9, cachedTokens: null, outputTokens: 4 });
    const responses = observe(
      'data: {"type":"response.created"}\n\ndata: {"type":"response.in_progress"}\n\n',
      'data: {"type":"response.output_text.delta","delta":"x"}\n\n',
    );
    assert.equal(responses.firstTokenMs, 1);
  });

  test("[DONE] and the middle of an event are told apart", () => {
    assert.equal(observe("data: a\n\n").done, false);
    assert.equal(observe("data: a\n\ndata: [DONE]\n\n").done, true);
    assert.equal(observe("data: a\n\ndata: [DONE]").done, false);
    assert.equal(observe("data: say [DONE]\n\n").done, false);
    assert.equal(observe('event: message_stop\ndata: {"type":"message_stop"}\n\n').done, true);
    assert.equal(observe('data: {"response":{},"type":"response.completed"}\n\n').done, true);
    assert.equal(observe(`data: {"delta":${JSON.stringify('"type":"message_stop"')}}\n\n`).done, false);
    assert.equal(observe('data: {"type":"message_stop"}\n\ndata: {"type":"ping"}\n\n').done, false);
    assert.equal(observe("data: a\n\n").midEvent, false);
    assert.equal(observe("data: a\r\n\r\n").midEvent, false);
    assert.equal(observe("data: a\n\ndata: b").midEvent, true);
    assert.equal(observe("data: a\n").midEvent, true);
  });

  test("pieces make no difference", () => {
    const line = fc.constantFrom(
      "data: {}\n",
      "data:x\r\n",
      "\n",
      "\r\n",
      ": c\n",
      "event: e\n",
      "da",
      "ta: split\n",
      "data",
    );
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 40 }),
        fc.array(fc.nat({ max: 300 }), { maxLength: 8 }),
        (lines, cuts) => {
          const text = lines.join("");
          const points = [0, ...cuts.map((cut) => Math.min(cut, text.length)), text.length].toSorted((a, b) => a - b);
          const pieces = points.slice(1).map((to, i) => text.slice(points[i], to));
          const expected = text.split("\n").filter((each) => each.startsWith("data:")).length;
          assert.equal(observe(...pieces).events, expected);
        },
      ),
    );
  });

  test("what it keeps of a long stream is bounded, and the usage at its end is read", () => {
    const observer = new StreamObserver();
    const event = Buffer.from(`data: ${"x".repeat(3000)}\n\n`);
    for (let i = 0; i < 5000; i++) observer.observe(event, 0, event.length, i);
    const last = Buffer.from('data: {"usage":{"prompt_tokens":1,"completion_tokens":5000}}\n\ndata: [DONE]\n\n');
    observer.observe(last, 0, last.length, 5000);
    assert.equal(observer.usage().outputTokens, 5000);
    assert.equal(observer.done, true);
  });

  test("announcements without end are cut off", () => {
    const observer = new StreamObserver();
    const ping = Buffer.from('data: {"type":"ping"}\n\n');
    let sent = 0;
    while (Number.isNaN(observer.firstTokenMs) && sent < 10_000) observer.observe(ping, 0, ping.length, sent++);
    assert.ok(sent < 10_000);
  });
});
