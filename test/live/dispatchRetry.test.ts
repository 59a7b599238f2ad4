import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { afterEach, describe, test } from "node:test";
import { ManualClock } from "#src/determinism/clock.ts";
import { ManualTimers } from "#src/determinism/timers.ts";
import { Deadlines } from "#src/dispatch/deadlines.ts";
import type { EngineConnection, ResponseHandler } from "#src/dispatch/engineConnection.ts";
import { Upstreams } from "#src/dispatch/upstreams.ts";
import { Rig, STREAM_HEAD, ScriptedEngine, eventually, json, post, talk } from "./dispatchRig.ts";
import type { Received, RigOptions } from "./dispatchRig.ts";

const started: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const thing of started.splice(0).reverse()) await thing.stop();
});

async function engine(script: (request: Received) => void): Promise<ScriptedEngine> {
  const made = await ScriptedEngine.start(script);
  started.push(made);
  return made;
}

async function rig(options: RigOptions): Promise<Rig> {
  const made = await Rig.start(options);
  started.push(made);
  return made;
}

const good = (request: Received): void => void request.socket.write(json({ from: "good" }));
const code = (text: string): string | undefined => /"code":"(\w+)"/u.exec(text)?.[1];

/** Is content with any answer. */
const ANSWERED: ResponseHandler = {
  onHead: () => "body",
  onBody: () => {},
  onReadDone: () => true,
  onEnd: () => {},
  onLost: ({ error }) => assert.fail(error),
  onDeadline: () => assert.fail("too late"),
};

/** What comes from now on stays with the kernel; a paused socket of node's would go on reading into its buffer. */
function leaveUnread(socket: Socket): void {
  (socket as unknown as { _handle: { readStop(): void } })._handle.readStop();
}

/** An address where nobody listens. */
async function nobody(): Promise<string> {
  const gone = await ScriptedEngine.start(() => {});
  const { url } = gone;
  await gone.stop();
  return url;
}

describe("before the first byte, another replica is tried", () => {
  const failures: Record<string, (request: Received) => void> = {
    "it dies": ({ socket }) => socket.destroy(),
    "it resets the connection": ({ socket }) => socket.resetAndDestroy(),
    "it dies after the head of a stream": ({ socket }) => socket.write(STREAM_HEAD, () => socket.destroy()),
    "it dies after the head of an answer": ({ socket }) =>
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", () => socket.destroy()),
    "429": ({ socket }) => socket.write(json({}, "429 Too Many Requests", "Retry-After: 7\r\n")),
    "503": ({ socket }) => socket.write(json({}, "503 Service Unavailable")),
    "503 whose body never ends": ({ socket }) =>
      socket.write("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n\r\n"),
    "502": ({ socket }) => socket.write(json({}, "502 Bad Gateway")),
    "504": ({ socket }) => socket.write(json({}, "504 Gateway Timeout")),
  };
  for (const [name, script] of Object.entries(failures)) {
    test(name, async () => {
      const bad = await engine(script);
      const other = await engine(good);
      const router = await rig({ engines: [bad.url, other.url] });
      const { text } = await talk(router.port, post('{"prompt":1}'));
      assert.match(text, /^HTTP\/1\.1 200[^]*good/u);
      assert.equal(bad.received.length, 1);
      assert.deepEqual(
        other.received.map(({ body }) => body.toString()),
        ['{"prompt":1}'],
      );
      assert.deepEqual(
        router.attempts.map(({ number, retried }) => [number, retried]),
        [
          [1, true],
          [2, false],
        ],
      );
      const kind = name.startsWith("429") || name.startsWith("503") ? "busy" : "failed";
      assert.equal(router.scheduler.outcomes[0]?.kind, kind);
      assert.equal(router.scheduler.live.size, 0);
    });
  }

  test("nobody listens there", async () => {
    const other = await engine(good);
    const router = await rig({ engines: [await nobody(), other.url] });
    assert.match((await talk(router.port, post())).text, /good/u);
    const [outcome] = router.scheduler.outcomes;
    assert.ok(outcome?.kind === "failed" && outcome.error.code === "engine_unreachable" && !outcome.started);
  });

  test("it accepts and does not shake hands: connect_timeout", async () => {
    const mute = await engine(() => {});
    const other = await engine(good);
    const router = await rig({
      engines: [mute.url.replace("http:", "https:"), other.url],
      limits: { connectMs: 50 },
    });
    assert.match((await talk(router.port, post())).text, /good/u);
    const [outcome] = router.scheduler.outcomes;
    assert.ok(outcome?.kind === "failed" && outcome.error.code === "connect_timeout");
    await eventually(() => mute.sockets.size === 0, "the attempt was given up");
  });

  test("it is removed while the prompt is computed", async () => {
    const leaving = await engine(({ socket }) =>
      // By now the router has read the head.
      socket.write(STREAM_HEAD, () =>
        setImmediate(() =>
          [...router.scheduler.live].forEach((placement) => placement.options.onLost("left", "decode")),
        ),
      ),
    );
    const other = await engine(good);
    const router = await rig({ engines: [leaving.url, other.url] });
    assert.match((await talk(router.port, post())).text, /good/u);
    await eventually(() => leaving.sockets.size === 0, "the old leg was closed");
    assert.equal(router.scheduler.live.size, 0);
  });

  test("the number of attempts is bounded, and the error says why", async () => {
    const engines = await Promise.all([1, 2, 3, 4, 5].map(() => engine(({ socket }) => socket.destroy())));
    const router = await rig({ engines: engines.map(({ url }) => url), maxRetries: 2 });
    const { text } = await talk(router.port, post());
    assert.match(text, /^HTTP\/1\.1 502/u);
    assert.equal(code(text), "engine_failed");
    assert.equal(
      engines.reduce((sum, { received }) => sum + received.length, 0),
      3,
    );
    assert.equal(router.scheduler.finishedTwice, 0);
  });

  test("when no other replica is left, the client hears of the failure, and of Retry-After", async () => {
    const busy = await engine(({ socket }) => socket.write(json({}, "429 Too Many Requests", "Retry-After: 7\r\n")));
    const router = await rig({ engines: [busy.url], maxRetries: 0 });
    const { text } = await talk(router.port, post());
    assert.match(text, /^HTTP\/1\.1 429[^]*retry-after: 7\r\n/u);
    assert.equal(code(text), "engine_busy");
    assert.deepEqual(router.scheduler.outcomes[0], { kind: "busy", status: 429, retryAfterMs: 7000 });
  });

  test("a busy engine uses up no retry, and the waiting goes on from where it began", async () => {
    let asked = 0;
    const one = await engine(({ socket }) =>
      socket.write(++asked < 9 ? json({}, "503 Service Unavailable") : json({ from: "good" })),
    );
    const router = await rig({ engines: [one.url], maxRetries: 1 });
    assert.match((await talk(router.port, post())).text, /good/u);
    const since = new Set(router.attempts.map(({ placement }) => placement.options.sinceMs));
    assert.deepEqual([router.attempts.length, since.size], [9, 1]);
  });
});

describe("no second execution", () => {
  test("4xx and 500 are answers", async () => {
    for (const status of [
      "400 Bad Request",
      "404 Not Found",
      "422 Unprocessable Content",
      "500 Internal Server Error",
    ]) {
      const first = await engine(({ socket }) => socket.write(json({ detail: "mine" }, status)));
      const other = await engine(good);
      const router = await rig({ engines: [first.url, other.url] });
      const { text } = await talk(router.port, post());
      assert.ok(text.startsWith(`HTTP/1.1 ${status.slice(0, 3)}`) && text.includes("mine"));
      assert.equal(other.received.length, 0);
      assert.equal(router.scheduler.outcomes[0]?.kind, status.startsWith("5") ? "failed" : "answered");
    }
  });

  test("an engine that hangs may be computing yet: first_token_timeout, 504, no other replica", async () => {
    const hung = await engine(() => {});
    const other = await engine(good);
    const router = await rig({ engines: [hung.url, other.url], limits: { firstTokenMs: 50 } });
    const { text } = await talk(router.port, post());
    assert.match(text, /^HTTP\/1\.1 504/u);
    assert.equal(code(text), "first_token_timeout");
    assert.equal(other.received.length, 0);
    await eventually(() => hung.sockets.size === 0, "the hung engine is disconnected");
  });

  test("total_timeout ends a request that waits", async () => {
    const hung = await engine(() => {});
    const router = await rig({ engines: [hung.url], limits: { totalMs: 50 } });
    assert.equal(code((await talk(router.port, post())).text), "total_timeout");
  });

  test("a keep-alive connection that the engine closed unread is replaced, and each prompt runs once", async () => {
    // Answer and FIN arrive together. The next request, sent ahead by the client, is written before the FIN is seen.
    const stale = await engine(({ socket, body }) => {
      socket.write(json({ echo: body.toString() }));
      socket.destroySoon();
    });
    const router = await rig({ engines: [stale.url], maxRetries: 0 });
    const prompts = Array.from({ length: 40 }, (_, i) => `"prompt ${i}"`);
    const { text } = await talk(router.port, prompts.map((prompt) => post(prompt, "")).join(""), (so) =>
      so.includes("prompt 39"),
    );
    assert.equal(text.match(/HTTP\/1\.1 200/gu)?.length, 40);
    assert.deepEqual(
      stale.received.map(({ body }) => body.toString()),
      prompts,
    );
    assert.equal(stale.connections, 40);
  });

  for (const [name, close] of Object.entries({
    "by a reset": (socket: Socket) => socket.destroy(),
    "by a FIN, with the reset a while later": (socket: Socket) => {
      socket.end();
      setTimeout(() => socket.destroy(), 20);
    },
  })) {
    test(`an idle connection that is closed over a request nobody read (${name}) blames nobody`, async () => {
      const idle: Socket[] = [];
      const only = await engine(({ socket, body }) => {
        socket.write(json({ echo: body.toString() }));
        if (idle.push(socket) === 1) leaveUnread(socket);
      });
      const router = await rig({ engines: [only.url], maxRetries: 0 });
      await talk(router.port, post('"a"'));
      const second = talk(router.port, post('"b"'));
      await eventually(() => router.scheduler.live.size === 1, "the second is on its way");
      // Written at the next turn of the loop at the latest.
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      close(idle[0]!);
      assert.match((await second).text, /^HTTP\/1\.1 200[^]*b/u);
      assert.deepEqual(
        only.received.map(({ body, connection }) => [body.toString(), connection]),
        [
          ['"a"', 0],
          ['"b"', 1],
        ],
      );
      assert.deepEqual(
        router.scheduler.outcomes.map(({ kind }) => kind),
        ["answered", "answered"],
      );
    });
  }

  test("an engine that closes at any moment after its answer costs no request, and runs no prompt twice", async () => {
    const hasty = await engine(({ socket, nth, connection }) => {
      socket.write(json({}));
      setTimeout(() => socket.destroy(), (connection * 7 + nth) % 5);
    });
    const router = await rig({ engines: [hasty.url], maxRetries: 0 });
    const prompts = Array.from({ length: 200 }, (_, i) => `"prompt ${i}"`);
    for (const [i, prompt] of prompts.entries()) {
      assert.match((await talk(router.port, post(prompt))).text, /^HTTP\/1\.1 200/u);
      await new Promise((resolve) => setTimeout(resolve, i % 6));
    }
    assert.deepEqual(
      hasty.received.map(({ body }) => body.toString()),
      prompts,
    );
  });

  test("a request that a reused connection's engine has read and dropped is not sent again there", async () => {
    const only = await engine(({ socket, nth }) => (nth === 0 ? socket.write(json({})) : socket.end()));
    const router = await rig({ engines: [only.url] });
    assert.match((await talk(router.port, post('"a"'))).text, /^HTTP\/1\.1 200/u);
    const { text } = await talk(router.port, post('"b"'));
    assert.match(text, /^HTTP\/1\.1 502/u);
    assert.deepEqual(
      only.received.map(({ body }) => body.toString()),
      ['"a"', '"b"'],
    );
  });
});

describe("connections", () => {
  test("idle ones are closed before the engine would", async () => {
    const one = await engine(good);
    const router = await rig({ engines: [one.url], upstream: { idleMs: 30 } });
    await talk(router.port, post());
    assert.equal(router.upstreams.connections, 1);
    await eventually(() => one.sockets.size === 0 && router.upstreams.connections === 0, "closed when idle");
  });

  test("also after somebody wanted one and gave up at once", async () => {
    const one = await engine(good);
    const clock = new ManualClock();
    const timers = new ManualTimers(clock);
    const deadlines = new Deadlines({ clock, timers, granularityMs: 10 });
    const upstreams = new Upstreams({ clock, deadlines, idleMs: 1000 });
    started.push({ stop: async () => upstreams.close() });
    const pool = upstreams.pool(one.url);
    const receiver = {
      onConnection: (connection: EngineConnection) => connection.send("GET / HTTP/1.1\r\n\r\n", [], ANSWERED),
      onUnavailable: () => assert.fail("unavailable"),
    };
    pool.acquire(receiver, null);
    await eventually(() => one.received.length === 1 && pool.idle === 1, "an idle connection");
    await timers.advance(100);
    pool.acquire(receiver, null)?.cancel();
    await eventually(() => pool.idle === 1, "the connection is idle again");
    await timers.advance(2000);
    await eventually(() => one.sockets.size === 0, "closed when idle");
  });

  test("an engine that was seen to close sooner shortens that", async () => {
    const one = await engine(good);
    const clock = new ManualClock();
    const timers = new ManualTimers(clock);
    const deadlines = new Deadlines({ clock, timers, granularityMs: 10 });
    const upstreams = new Upstreams({ clock, deadlines, idleMs: 4000 });
    started.push({ stop: async () => upstreams.close() });
    const pool = upstreams.pool(one.url);
    const receiver = {
      onConnection: (connection: EngineConnection) => connection.send("GET / HTTP/1.1\r\n\r\n", [], ANSWERED),
      onUnavailable: () => assert.fail("unavailable"),
    };
    const idle = async (connections: number): Promise<void> => {
      for (let fresh = 0; fresh < connections; fresh++) pool.acquire(receiver, null, true);
      await eventually(() => pool.idle === connections, "idle connections");
    };
    await idle(2);
    await timers.advance(2000);
    assert.equal(pool.idle, 2);
    const [first] = one.sockets;
    first?.end();
    await eventually(() => pool.connections === 1, "the engine closed one");
    pool.acquire(receiver, null);
    await eventually(() => one.received.length === 3 && pool.idle === 1, "the other was used again");
    await timers.advance(1500);
    assert.equal(pool.connections, 1);
    await timers.advance(150);
    await eventually(() => one.sockets.size === 0, "closed before the engine would");
  });

  test("Keep-Alive: timeout shortens that", async () => {
    const one = await engine(({ socket }) => socket.write(json({}, "200 OK", "Keep-Alive: timeout=0\r\n")));
    const router = await rig({ engines: [one.url] });
    await talk(router.port, post());
    await eventually(() => one.sockets.size === 0, "closed as the engine wished");
  });

  test("their number is bounded, and so is the number of those who wait", async () => {
    const held: Received[] = [];
    const one = await engine((request) => void held.push(request));
    const router = await rig({
      engines: [one.url],
      upstream: { maxConnections: 2, maxWaiting: 3 },
      maxRetries: 0,
      limits: { connectMs: null },
    });
    const answers = Array.from({ length: 6 }, () => talk(router.port, post()));
    const refused = await Promise.race(answers);
    assert.equal(code(refused.text), "engine_busy");
    assert.equal(held.length, 2);
    for (let answered = 0; answered < 5; answered++) {
      await eventually(() => held.length > 0, "another request reached the engine");
      held.shift()?.socket.write(json({}));
    }
    const texts = (await Promise.all(answers)).map(({ text }) => text.slice(9, 12));
    assert.deepEqual(texts.toSorted(), ["200", "200", "200", "200", "200", "503"]);
    assert.equal(one.connections, 2);
  });

  test("a replica that accepts and never answers harms nobody else", async () => {
    const mute = await engine(() => {});
    const other = await engine(good);
    const router = await rig({ engines: [mute.url, other.url] });
    const stuck: Promise<unknown>[] = [];
    for (let i = 0; i < 50; i++) {
      stuck.push(talk(router.port, post()));
      await eventually(() => mute.received.length === i + 1, "one is stuck");
      assert.match((await talk(router.port, post())).text, /good/u);
    }
    await mute.stop();
    router.scheduler.replicas.shift();
    await Promise.all(stuck);
  });

  test("IPv6 origins", async (t) => {
    const { createServer } = await import("node:net");
    const server = createServer((socket) => socket.once("data", () => socket.end(json({ v6: true }))));
    const listening = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(0, "::1", () => resolve(true));
    });
    if (!listening) return t.skip("no IPv6 here");
    const { port } = server.address() as { port: number };
    const router = await rig({ engines: [`http://[::1]:${port}`] });
    assert.match((await talk(router.port, post())).text, /"v6":true/u);
    server.close();
  });
});
