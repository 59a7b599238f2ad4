import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { LineFile } from "#src/telemetry/lineFile.ts";
import { RequestLog } from "#src/telemetry/requestLog.ts";
import type { RequestRecord } from "#src/telemetry/requestRecord.ts";

const RECORD: RequestRecord = {
  requestId: "req-1",
  decisionId: "d-1",
  kind: "request",
  method: "POST",
  path: "/v1/chat/completions",
  model: "llama",
  adapter: null,
  tenant: "team-a",
  className: "standard",
  replica: "a:1",
  attempt: 1,
  status: 200,
  code: null,
  fault: null,
  streamed: true,
  bodyBytes: 2_048,
  ttftMs: 81.23456,
  e2eMs: 900,
  queueMs: 0,
  promptTokens: 500,
  cachedTokensPredicted: 480,
  cachedTokensReported: null,
  outputTokens: 60,
};

function collecting(): {
  readonly log: RequestLog;
  readonly lines: () => Record<string, unknown>[];
  readonly text: () => string;
} {
  const written: string[] = [];
  const log = new RequestLog({ destination: { write: (line: string) => void written.push(line) } });
  return {
    log,
    lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>),
    text: () => written.join(""),
  };
}

describe("a request's line", () => {
  test("is one JSON object with the record's fields, and unknown is null, not zero", () => {
    const { log, lines } = collecting();
    log.request(RECORD);
    const { level, time, ...fields } = lines()[0]!;
    assert.equal(level, 30);
    assert.ok(!Number.isNaN(Date.parse(String(time))));
    assert.deepEqual(fields, { ...RECORD, ttftMs: 81.235 });
  });

  test("escapes what JSON escapes, and what is no number is null", () => {
    const { log, lines } = collecting();
    const odd = {
      model: 'a"b\\c',
      tenant: "line\nbreak",
      className: "\u0000\u007f",
      replica: "h\u00f6st \ud800 \u{1f600}",
    };
    log.request({ ...RECORD, ...odd, e2eMs: Number.NaN, promptTokens: Number.POSITIVE_INFINITY, outputTokens: 1e21 });
    const [line] = lines();
    assert.deepEqual({ ...odd, ...line }, { ...line, ...odd });
    assert.deepEqual([line!["e2eMs"], line!["promptTokens"], line!["outputTokens"]], [null, null, 1e21]);
  });

  test("a retry has its own, joined by the request's id", () => {
    const { log, lines } = collecting();
    log.request({
      ...RECORD,
      kind: "attempt",
      replica: "a:1",
      status: 502,
      code: "engine_unreachable",
      fault: "engine",
    });
    log.request({ ...RECORD, attempt: 2, decisionId: "d-2", replica: "b:1" });
    const [attempt, end] = lines();
    assert.equal(attempt!["requestId"], end!["requestId"]);
    assert.deepEqual([attempt!["kind"], end!["kind"]], ["attempt", "request"]);
    assert.notEqual(attempt!["decisionId"], end!["decisionId"]);
  });

  test("holds no prompt and no key, whatever the caller hands over", () => {
    const { log, text } = collecting();
    const careless = {
      ...RECORD,
      path: "/v1/chat/completions?key=sk-secret-1",
      prompt: "my medical history",
      headers: { authorization: "Bearer sk-secret-2" },
      body: { messages: [{ content: "my medical history" }] },
    };
    log.request(careless);
    assert.doesNotMatch(text(), /sk-secret|medical/);
  });
});

describe("events", () => {
  test("secrets stay out wherever they stand", () => {
    const { log, text, lines } = collecting();
    log.event("warn", "reload refused", {
      apiKey: "sk-secret-1",
      engine: { name: "a:1", apiKey: "sk-secret-2", headers: { authorization: "Bearer sk-secret-3" } },
      token: "sk-secret-4",
    });
    assert.doesNotMatch(text(), /sk-secret/);
    assert.equal(lines()[0]!["msg"], "reload refused");
    assert.equal((lines()[0]!["engine"] as Record<string, unknown>)["name"], "a:1");
  });

  test("levels below the one that was set are not written", () => {
    const written: string[] = [];
    const log = new RequestLog({ level: "warn", destination: { write: (line: string) => void written.push(line) } });
    log.event("info", "quiet");
    log.request(RECORD);
    log.event("error", "loud");
    assert.equal(written.length, 1);
  });
});

test("closing writes what is still buffered", async () => {
  const directory = mkdtempSync(join(tmpdir(), "kvasir-log-"));
  try {
    const path = join(directory, "requests.log");
    const log = new RequestLog({ destination: path });
    for (let at = 0; at < 100; at++) log.request({ ...RECORD, requestId: `req-${at}` });
    await log.close();
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    assert.equal(lines.length, 100);
    assert.match(lines[99]!, /"requestId":"req-99"/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a path that cannot be opened stops the start", () => {
  assert.throws(() => new RequestLog({ destination: join(tmpdir(), "kvasir-no-such-directory", "x.log") }), /ENOENT/);
});

test(
  "a full disk is reported, its lines are counted, and nothing ends",
  { skip: !existsSync("/dev/full") },
  async () => {
    const causes: Error[] = [];
    const log = new RequestLog({ destination: "/dev/full", onError: (cause) => causes.push(cause) });
    for (let at = 0; at < 3; at++) log.request(RECORD);
    await log.close();
    assert.match(causes[0]!.message, /ENOSPC/);
    assert.equal(log.dropped, 3);
  },
);

test("past what may wait for a slow destination, lines are dropped and counted", async () => {
  const directory = mkdtempSync(join(tmpdir(), "kvasir-log-"));
  const file = new LineFile(join(directory, "slow.log"), assert.fail);
  try {
    const line = "x".repeat(1024 * 1024);
    for (let at = 0; at < 40; at++) file.write(line);
    assert.ok(file.dropped > 0 && file.dropped < 40, String(file.dropped));
    await file.close();
    assert.equal(statSync(join(directory, "slow.log")).size, (40 - file.dropped) * line.length);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
