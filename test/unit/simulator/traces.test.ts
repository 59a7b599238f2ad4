import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseTrace } from "#src/simulator/traces/readTrace.ts";
import { TraceError } from "#src/simulator/traces/traceRow.ts";
import { closedLoop, openLoop } from "#src/simulator/workload/traceWorkload.ts";

const NOBODY = { classes: [], tenants: [], adapters: [] };

const MOONCAKE = `{"timestamp": 3000, "input_length": 700, "output_length": 5, "hash_ids": [7, 9]}
{"timestamp": 0, "input_length": 512, "output_length": 0, "hash_ids": [7]}

{"timestamp": 3000, "input_length": 20, "output_length": 3, "hash_ids": [8]}
`;

describe("traces", () => {
  it("reads Mooncake's, in order of time, from zero", () => {
    const { rows, bucketMs } = parseTrace(MOONCAKE, "m.jsonl");
    assert.equal(bucketMs, 3_000);
    assert.deepEqual(
      rows.map(({ atMs, promptTokens }) => [atMs, promptTokens]),
      [
        [0, 512],
        [3_000, 700],
        [3_000, 20],
      ],
    );
    assert.deepEqual(rows[1]?.content, { ids: [7, 9], tokens: 512 });
  });

  it("reads Bailian's, with each turn's conversation", () => {
    const line = (chat: number, parent: number, seconds: number) =>
      JSON.stringify({
        chat_id: chat,
        parent_chat_id: parent,
        timestamp: seconds,
        input_length: 40,
        output_length: 6,
        type: "text",
        turn: 1,
        hash_ids: [1, 2, 3],
      });
    const { rows } = parseTrace([line(5, -1, 10), line(6, 5, 11.5), line(7, 6, 12)].join("\n"), "b.jsonl");
    assert.deepEqual(
      rows.map(({ atMs, session }) => [atMs, session]),
      [
        [0, "chat-5"],
        [1_500, "chat-5"],
        [2_000, "chat-5"],
      ],
    );
    assert.deepEqual(rows[0]?.content, { ids: [1, 2, 3], tokens: 16 });
  });

  it("reads Azure's", () => {
    const text =
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04.0319600,3180,8\r\n";
    const { rows } = parseTrace(text, "a.csv");
    assert.equal(rows.length, 2);
    assert.ok(Math.abs(rows[1]!.atMs - 52) < 1e-3);
    assert.deepEqual(
      { ...rows[1], atMs: 0 },
      {
        atMs: 0,
        promptTokens: 3180,
        outputTokens: 8,
        content: null,
        session: null,
      },
    );
  });

  it("reads BurstGPT's without its failed requests", () => {
    const text =
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
      "5,a,1.2,ChatGPT,472,18,490,Conversation log\n45,a,0,ChatGPT,1087,0,1087,Conversation log\n118,,2,GPT-4,417,276,693,API log\n";
    const { rows } = parseTrace(text, "b.csv");
    assert.deepEqual(
      rows.map(({ atMs, outputTokens, session }) => [atMs, outputTokens, session]),
      [
        [0, 18, "session-a"],
        [113_000, 276, null],
      ],
    );
  });

  it("names the line that cannot be read", () => {
    const broken = `${MOONCAKE}{"timestamp": 1}\n`;
    assert.throws(
      () => parseTrace(broken, "m.jsonl"),
      (error) => error instanceof TraceError && error.message.startsWith("m.jsonl:5 "),
    );
    assert.throws(() => parseTrace("a,b\n1,2\n", "x.csv"), TraceError);
    assert.throws(
      () => parseTrace("TIMESTAMP,ContextTokens,GeneratedTokens\nnever,1,2\n", "a.csv"),
      /a\.csv:2 .*is no time/u,
    );
    assert.throws(() => parseTrace("TIMESTAMP,ContextTokens,Generated\n", "a.csv"), /GeneratedTokens/u);
  });
});

describe("playing a trace", () => {
  const trace = parseTrace(MOONCAKE, "m.jsonl");
  const times = (rate: number, seed: number) => {
    const workload = openLoop(trace, rate, NOBODY, seed);
    const atMs: number[] = [];
    for (let next = workload.next(); next !== null; next = workload.next()) atMs.push(next.atMs);
    return atMs;
  };

  it("puts each request anywhere in its bucket, the same for the same seed", () => {
    const atMs = times(1, 1);
    assert.ok(atMs[0]! < 3_000 && atMs[1]! >= 3_000 && atMs[2]! < 6_000 && atMs[1]! <= atMs[2]!);
    assert.deepEqual(times(1, 1), atMs);
    assert.notDeepEqual(times(1, 2), atMs);
    assert.deepEqual(
      times(2, 1),
      atMs.map((each) => each / 2),
    );
  });

  it("in a closed loop begins with one request per client, and goes on as they end", () => {
    const workload = closedLoop(trace, 2, NOBODY, 1);
    const first = [workload.next(), workload.next(), workload.next()];
    assert.deepEqual(
      first.map((each) => each?.promptTokens ?? null),
      [512, 700, null],
    );
    const [next] = workload.ended(first[0]!, true, 250);
    assert.deepEqual([next?.atMs, next?.promptTokens], [250, 20]);
    assert.deepEqual(workload.ended(next!, true, 300), []);
  });
});
