import assert from "node:assert/strict";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { afterEach, describe, test } from "node:test";
import { Rig, STREAM_HEAD, ScriptedEngine, bodyOf, chunk, eventually, json, post, talk } from "./dispatchRig.ts";
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

function client(port: number, bytes: string): Socket {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("error", () => {});
  socket.on("data", () => {});
  socket.write(bytes);
  return socket;
}

describe("the client leaves", () => {
  const leave: Record<string, (socket: Socket) => void> = {
    "closing in order": (socket) => socket.end(),
    "by a reset": (socket) => socket.resetAndDestroy(),
  };
  for (const [how, go] of Object.entries(leave)) {
    test(`${how}, while the prompt is processed: the engine is disconnected, and not blamed`, async () => {
      const { engine, rig } = await setUp(() => {});
      const socket = client(rig.port, post());
      await eventually(() => engine.received.length === 1, "the engine has the prompt");
      const leftMs = performance.now();
      let noticedMs = Number.POSITIVE_INFINITY;
      engine.received[0]?.socket.once("close", () => (noticedMs = performance.now()));
      go(socket);
      await eventually(() => noticedMs < Number.POSITIVE_INFINITY, "the engine noticed");
      // The behaviour's own bound, with more than a hundred times the usual time in it.
      assert.ok(noticedMs - leftMs < 1000);
      assert.deepEqual(rig.scheduler.outcomes, [{ kind: "client_gone" }]);
      assert.equal(rig.scheduler.live.size, 0);
      assert.equal(rig.attempts[0]?.error?.code, "client_closed");
    });
  }

  test("while it waits for a replica: it never reaches one", async () => {
    const { engine, rig } = await setUp(({ socket }) => socket.write(json({})));
    rig.scheduler.open = false;
    const socket = client(rig.port, post());
    await eventually(() => rig.scheduler.waiting.size === 1, "it waits");
    socket.destroy();
    await eventually(() => rig.scheduler.waiting.size === 0 && rig.carrier.active === 0, "it is forgotten");
    rig.scheduler.release();
    assert.match((await talk(rig.port, post())).text, /^HTTP\/1\.1 200/u);
    assert.equal(engine.received.length, 1);
  });

  test("a thousand times, at every stage: every counter is back at zero, and no socket is left", async () => {
    const stages = ["body", "sent", "head", "streaming", "done"] as const;
    const headSent: (() => void)[] = [];
    const { engine, rig } = await setUp(({ socket, body }) => {
      const stage = body.toString();
      if (stage === '"head"') socket.write(STREAM_HEAD, () => headSent.shift()?.());
      if (stage === '"streaming"') socket.write(STREAM_HEAD);
      if (stage === '"streaming"') socket.write(chunk("data: token\n\n"));
      if (stage === '"done"') socket.write(json({}));
    });
    const one = async (index: number): Promise<void> => {
      const stage = stages[index % stages.length] ?? "sent";
      const whole = post(`"${stage}"`, "");
      const socket = client(rig.port, stage === "body" ? whole.slice(0, -3) : whole);
      if (stage === "streaming" || stage === "done") await new Promise((resolve) => socket.once("data", resolve));
      else if (stage === "head") await new Promise<void>((resolve) => headSent.push(resolve));
      else await new Promise((resolve) => setImmediate(resolve));
      socket.destroy();
    };
    for (let batch = 0; batch < 20; batch++) {
      await Promise.all(Array.from({ length: 50 }, (_, i) => one(batch * 50 + i)));
    }
    await eventually(() => rig.server.connections === 0, "no client connection");
    await eventually(() => rig.carrier.active === 0 && rig.scheduler.live.size === 0, "no request");
    assert.equal(rig.scheduler.finishedTwice, 0);
    assert.equal(rig.scheduler.waiting.size, 0);
    // What is left towards the engine is idle, and usable.
    await eventually(() => engine.sockets.size === rig.upstreams.connections, "no abandoned engine connection");
    assert.match((await talk(rig.port, post('"done"'))).text, /^HTTP\/1\.1 200/u);
    rig.upstreams.close();
    await eventually(() => engine.sockets.size === 0 && rig.upstreams.connections === 0, "no engine connection");
    await eventually(() => rig.deadlines.size === 0, "nothing watched");
  });
});

describe("the router shuts down", () => {
  test("what is under way finishes while new connections are refused, and its answer says close", async () => {
    const sockets: Socket[] = [];
    const { rig } = await setUp(({ socket }) => void sockets.push(socket));
    const idle = client(rig.port, "");
    await eventually(() => rig.server.connections === 1, "an idle connection");
    const answer = talk(rig.port, post("{}", ""));
    await eventually(() => sockets.length === 1, "a request under way");
    const drained = rig.server.drain();
    await eventually(() => idle.destroyed || idle.readableEnded, "the idle connection is closed");
    assert.equal((await talk(rig.port, post())).broken, true);
    sockets[0]?.write(json({ ok: 1 }));
    const { text } = await answer;
    assert.match(text, /^HTTP\/1\.1 200[^]*Connection: close\r\n/u);
    await drained;
  });

  test("a stream that was promised keep-alive before ends its connection with it", async () => {
    const sockets: Socket[] = [];
    const { rig } = await setUp(({ socket }) => {
      sockets.push(socket);
      socket.write(STREAM_HEAD);
      socket.write(chunk("data: token\n\n"));
    });
    const answer = talk(rig.port, post("{}", ""));
    await eventually(() => rig.scheduler.firstTokens === 1, "it streams");
    const drained = rig.server.drain();
    sockets[0]?.write(`${chunk("data: [DONE]\n\n").toString()}0\r\n\r\n`);
    const { text, broken } = await answer;
    assert.doesNotMatch(text, /Connection: close/u);
    assert.ok(!broken && text.endsWith("0\r\n\r\n"));
    await drained;
  });

  test("the grace time over, streams get an error event and engines are told", async () => {
    const { engine, rig } = await setUp(({ socket }) => {
      socket.write(STREAM_HEAD);
      socket.write(chunk("data: token\n\n"));
    });
    const answer = talk(rig.port, post());
    await eventually(() => rig.scheduler.firstTokens === 1, "it streams");
    rig.carrier.abortAll();
    assert.match(bodyOf((await answer).text), /token\n\ndata: \{"error":.*"code":"shutting_down"/u);
    assert.deepEqual(rig.scheduler.outcomes, [{ kind: "shutdown" }]);
    await eventually(() => engine.sockets.size === 0, "the engine is disconnected");
  });

  test("requests that wait get a retryable 503", async () => {
    const { rig } = await setUp(() => {});
    rig.scheduler.open = false;
    const answer = talk(rig.port, post());
    await eventually(() => rig.scheduler.waiting.size === 1, "it waits");
    rig.carrier.abortAll();
    const { text } = await answer;
    assert.match(text, /^HTTP\/1\.1 503[^]*x-should-retry: true\r\n[^]*"code":"shutting_down"/u);
    assert.equal(rig.scheduler.waiting.size, 0);
  });
});
