import assert from "node:assert/strict";
import { connect } from "node:net";
import { afterEach, describe, test } from "node:test";
import { LAST_CHUNK, Rig, STREAM_HEAD, ScriptedEngine, bodyOf, chunk, eventually, post, talk } from "./dispatchRig.ts";
import type { Received, RigOptions } from "./dispatchRig.ts";

const started: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const thing of started.splice(0).reverse()) await thing.stop();
});

async function setUp(script: (request: Received) => void, options: Partial<RigOptions> = {}) {
  const engine = await ScriptedEngine.start(script);
  const rig = await Rig.start({ engines: [engine.url], ...options });
  started.push(engine, rig);
  return { engine, rig };
}

/** With everything that SSE allows and a careless reader breaks on. */
const SAMPLE = Buffer.from(
  ": a comment\n\n" +
    'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n' +
    'data:{"choices":[{"delta":{"content":"no space, \u{1f600} and \u00e9"}}]}\n\n' +
    'event: x\r\nid: 7\r\nretry: 10\r\ndata: {"choices":[{"delta":{"content":"crlf"}}]}\r\n\r\n' +
    "data: two\ndata: lines\n\n" +
    'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3}}}\n\n' +
    "data: [DONE]\n\n",
);

/** Sends a stream in two reads: the rest only once the router has passed the first part on. */
function inTwo(socket: Received["socket"], first: Buffer, rest: Buffer): void {
  socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunk(first)]), () =>
    setImmediate(() => socket.write(Buffer.concat([chunk(rest), Buffer.from(LAST_CHUNK)]))),
  );
}

describe("a stream passes unchanged", () => {
  test("split at every byte, and its usage is read all the same", async () => {
    let at = 1;
    const { engine, rig } = await setUp(({ socket }) => inTwo(socket, SAMPLE.subarray(0, at), SAMPLE.subarray(at)));
    for (; at < SAMPLE.length; at++) {
      const { text } = await talk(rig.port, post());
      assert.equal(bodyOf(text), SAMPLE.toString("latin1"), `split at ${at}`);
      assert.deepEqual(rig.scheduler.outcomes.at(-1), {
        kind: "answered",
        status: 200,
        usage: { promptTokens: 9, cachedTokens: 3, outputTokens: 4 },
        sent: true,
      });
    }
    assert.equal(engine.connections, 1);
    assert.equal(rig.scheduler.firstTokens, SAMPLE.length - 1);
  });

  test("each event arrives before the next is sent", async () => {
    const sockets: Received["socket"][] = [];
    const { rig } = await setUp(({ socket }) => {
      sockets.push(socket);
      socket.write(STREAM_HEAD);
    });
    let seen = "";
    const client = connect({ port: rig.port, host: "127.0.0.1" });
    client.on("data", (bytes: Buffer) => (seen += bytes.toString("latin1")));
    client.write(post());
    await eventually(() => sockets.length === 1, "the request reached the engine");
    for (let i = 0; i < 5; i++) {
      sockets[0]?.write(chunk(`data: event ${i}\n\n`));
      await eventually(() => seen.includes(`event ${i}`), `event ${i}`);
    }
    client.destroy();
  });

  test("only the usage chunk that the router asked for is taken out, wherever it is split", async () => {
    let at = 1;
    const { rig } = await setUp(({ socket }) => inTwo(socket, SAMPLE.subarray(0, at), SAMPLE.subarray(at)), {
      call: { stripUsage: true },
    });
    const expected = SAMPLE.toString("latin1").replace(/data: \{"choices":\[\],"usage.*\n\n/u, "");
    assert.notEqual(expected.length, SAMPLE.length);
    for (; at < SAMPLE.length; at++) {
      const { text } = await talk(rig.port, post());
      assert.equal(bodyOf(text), expected, `split at ${at}`);
      const outcome = rig.scheduler.outcomes.at(-1);
      assert.ok(outcome?.kind === "answered" && outcome.usage.outputTokens === 4);
    }
  });
});

describe("a stream that breaks", () => {
  const opened = Buffer.concat([Buffer.from(STREAM_HEAD), chunk('data: {"choices":[{"delta":{"content":"a"}}]}\n\n')]);

  test("the engine dies: one error event, no [DONE], and the framing is complete", async () => {
    const { rig } = await setUp(({ socket }) => socket.write(opened, () => socket.destroy()));
    const { text } = await talk(rig.port, post());
    const events = bodyOf(text).trim().split("\n\n");
    assert.equal(events.length, 2);
    assert.match(events[1] ?? "", /^data: \{"error":\{.*"code":"engine_failed"/u);
    assert.doesNotMatch(text, /DONE/u);
    assert.ok(text.endsWith(LAST_CHUNK));
    const [outcome] = rig.scheduler.outcomes;
    assert.ok(outcome?.kind === "failed" && outcome.started);
    assert.equal(rig.attempts.length, 1);
  });

  test("within an event: the error still is an event of its own", async () => {
    const { rig } = await setUp(({ socket }) =>
      socket.write(Buffer.concat([opened, chunk('data: {"choi')]), () => socket.destroy()),
    );
    const { text } = await talk(rig.port, post());
    assert.match(bodyOf(text), /data: \{"choi\n\ndata: \{"error":.*\}\n\n$/u);
  });

  test("it stalls: idle_timeout, and the engine is disconnected", async () => {
    const { engine, rig } = await setUp(({ socket }) => socket.write(opened), { limits: { idleMs: 40 } });
    const { text } = await talk(rig.port, post());
    assert.match(bodyOf(text), /"code":"idle_timeout"/u);
    await eventually(() => engine.sockets.size === 0, "engine disconnected");
  });

  test("headers and then nothing: first_token_timeout, not idle_timeout", async () => {
    const { rig } = await setUp(({ socket }) => socket.write(STREAM_HEAD), {
      limits: { idleMs: 20, firstTokenMs: 60 },
    });
    const { text } = await talk(rig.port, post());
    assert.match(text, /^HTTP\/1\.1 504[^]*"code":"first_token_timeout"/u);
  });

  test("after its last event: it was answered, whatever became of the framing", async () => {
    const endings: Record<string, string> = {
      "/v1/chat/completions": "data: [DONE]\n\n",
      "/v1/messages": 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
      "/v1/responses": 'event: response.completed\ndata: {"type":"response.completed"}\n\n',
    };
    for (const [target, ending] of Object.entries(endings)) {
      for (const breakOff of [(socket: Received["socket"]) => socket.destroy(), () => {}]) {
        const { engine, rig } = await setUp(
          ({ socket }) => socket.write(Buffer.concat([opened, chunk(ending)]), () => breakOff(socket)),
          { limits: { idleMs: 50 } },
        );
        const { text } = await talk(rig.port, post("{}", "Connection: close\r\n", target));
        assert.ok(bodyOf(text).endsWith(ending), text);
        assert.ok(text.endsWith(LAST_CHUNK));
        assert.equal(rig.scheduler.outcomes[0]?.kind, "answered");
        await eventually(() => engine.sockets.size === 0, "the connection to the engine is closed");
      }
    }
  });

  test("the total limit ends a stream that flows", async () => {
    const { rig } = await setUp(
      ({ socket }) => {
        socket.write(STREAM_HEAD);
        const timer = setInterval(() => socket.write(chunk("data: x\n\n")), 5);
        socket.on("close", () => clearInterval(timer));
      },
      { limits: { totalMs: 100, idleMs: 60_000 } },
    );
    const { text } = await talk(rig.port, post());
    assert.match(bodyOf(text), /"code":"total_timeout"/u);
  });

  test("an answer that is no stream: the client's connection breaks rather than look complete", async () => {
    for (const head of ["Content-Length: 100", "Transfer-Encoding: chunked"]) {
      const { rig } = await setUp(({ socket }) =>
        socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n5\r\nhello\r\n`, () => socket.destroy()),
      );
      const { text } = await talk(rig.port, post("{}", ""));
      assert.match(text, /hello/u);
      assert.ok(!text.endsWith(LAST_CHUNK));
      assert.ok(bodyOf(text).length < 100);
    }
  });

  test("headers without end: engine_failed, which says why", async () => {
    const { rig } = await setUp(({ socket }) => {
      socket.on("error", () => {});
      socket.write(`HTTP/1.1 200 OK\r\n${`X-A: ${"a".repeat(1000)}\r\n`.repeat(400)}`);
    });
    const { text } = await talk(rig.port, post());
    assert.match(text, /^HTTP\/1\.1 502[^]*its headers are too large or too many/u);
  });

  test("bytes that are not HTTP: engine_failed, before and after the first byte", async () => {
    const { rig } = await setUp(({ socket }) => socket.write("SMTP ready\r\n"));
    assert.match((await talk(rig.port, post())).text, /^HTTP\/1\.1 502[^]*"code":"engine_failed"/u);
    const { rig: later } = await setUp(({ socket }) => socket.write(Buffer.concat([opened, Buffer.from("zz\r\n")])));
    assert.match(bodyOf((await talk(later.port, post())).text), /"code":"engine_failed"/u);
  });
});

describe("a slow client", () => {
  test("pauses its engine; what is held in between is bounded; then everything arrives", async () => {
    const total = 64 * 1024 * 1024;
    const piece = Buffer.alloc(65_536, "z");
    let written = 0;
    const { engine, rig } = await setUp(({ socket }) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${total}\r\n\r\n`);
      const more = (): void => {
        while (written < total) {
          written += piece.length;
          if (!socket.write(piece)) return void socket.once("drain", more);
        }
      };
      more();
    });
    const client = connect({ port: rig.port, host: "127.0.0.1" });
    client.pause();
    client.write(post());
    let before = -1;
    // Stalled: nothing has moved for a while, and far from everything was taken.
    await eventually(() => {
      const still = written === before && written > 0;
      before = written;
      return still && engine.sockets.size === 1 && [...engine.sockets].every((socket) => socket.writableNeedDrain);
    }, "the engine is paused");
    assert.ok(written < total / 2, `${written} bytes were taken from the engine`);
    let received = 0;
    client.on("data", (bytes: Buffer) => (received += bytes.length));
    client.resume();
    await eventually(() => received > total, "the whole answer");
    client.destroy();
  });

  test("one that reads nothing for the idle limit is let go, and its engine too", async () => {
    const { engine, rig } = await setUp(
      ({ socket }) => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 64000000\r\n\r\n`);
        socket.write(Buffer.alloc(64_000_000));
      },
      { limits: { idleMs: 1_000 } },
    );
    const client = connect({ port: rig.port, host: "127.0.0.1" });
    client.on("error", () => {});
    client.pause();
    client.write(post());
    await eventually(() => rig.scheduler.outcomes.length === 1, "the request ended");
    assert.equal(rig.scheduler.outcomes[0]?.kind, "client_gone");
    await eventually(() => engine.sockets.size === 0, "engine disconnected");
    client.destroy();
  });
});
